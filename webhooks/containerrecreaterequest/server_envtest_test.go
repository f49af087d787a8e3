//go:build envtest

package containerrecreaterequest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{crr}, Setup: serve(containerrecreaterequest.Options{}),
		Bad: newObject(t, "v1beta1", "default", `{"podName":"web","containers":[]}`),
	})
	for name, labels := range map[string]map[string]string{"node-1": nil, "virtual": {"type": "virtual-kubelet"}} {
		if err := g.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("Filled", func(t *testing.T) { testFilled(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Calls", func(t *testing.T) { testCalls(t, g) })
	t.Run("Gate", func(t *testing.T) { testGate(t, g) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

func serve(o containerrecreaterequest.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, api client.Client) error {
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		w, err := containerrecreaterequest.New(api, o)
		if err != nil {
			return err
		}
		return w.SetupWithManager(mgr)
	}
}

func newObject(t *testing.T, version, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"ContainerRecreateRequest","metadata":{"generateName":"again-","namespace":%q},"spec":%s}`, version, namespace, spec)
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// newPod is a pod of these containers, as JSON, on a node; each that is not an init container has run.
func newPod(t *testing.T, g *reviewtest.Ground, namespace, name, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := json.Unmarshal([]byte(spec), &pod.Spec); err != nil {
		t.Fatalf("%v: %s", err, spec)
	}
	if err := g.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	for i, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: "containerd://" + c.Name, RestartCount: int32(i), Image: c.Image,
		})
	}
	for _, c := range pod.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: "containerd://" + c.Name, RestartCount: 7, Image: c.Image,
		})
	}
	if err := g.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
