//go:build envtest

package containerrecreaterequest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// What no webhook has looked at is survived, and told, and keeps no good request from its turn.
func TestOddRequests(t *testing.T) {
	b, _ := start(t)
	pod := b.pod("web")
	for why, change := range map[string]func(*request){
		"it names no pod by its UID":     func(*request) {},
		"such a path cannot be read":     func(r *request) { r.Spec.PodName = "web/status" },
		"nor can one that leads upwards": func(r *request) { r.Spec.PodName = ".." },
		"nor can one without a name":     func(r *request) { r.Spec.PodName = "" },
	} {
		t.Log(why)
		r := b.asked("", pod, change)
		r.GenerateName = "odd-"
		if err := b.Client.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		b.becomes(r, ended("pod has gone"))
	}
	good := b.ask("good", pod)
	b.becomes(good, ended(""))
}

// A request can be stored that none can be. It ends and says why, leaves its pod in traffic, and those beside it, even
// of the same pod, never notice.
func TestMalformedRequest(t *testing.T) {
	for name, c := range map[string]struct {
		why     string
		hook    string
		status  string
		message string
	}{
		"spec": {
			"a port is more than its type holds", `{"httpGet":{"port":99999999999}}`, `{"phase":"Recreating"}`,
			"cannot be read: json: cannot unmarshal number",
		},
		"both": {
			hook:    `{"httpGet":{"port":99999999999}}`,
			status:  `{"phase":"Recreating","conditions":[{"type":"PreRecreateGrace","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-02t03:04:05z"}]}`,
			message: "cannot be read: decode what is around the spec",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			pod := b.pod("web", gated)
			b.Status(pod, func(pod *corev1.Pod) {
				is := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
				is.Status, is.Message = corev1.ConditionFalse,
					fmt.Sprintf(`[{"userAgent":"ContainerRecreateRequest","key":"%s/odd"}]`, b.Namespace)
			})
			odd := b.malformed(pod, c.hook, c.status)
			b.reconcile(ahead(0), plain)
			b.node.serve()
			b.Until(func() error {
				if err := b.Look(odd); err != nil {
					return err
				}
				phase, _, _ := unstructured.NestedString(odd.Object, "status", "phase")
				message, _, _ := unstructured.NestedString(odd.Object, "status", "message")
				if phase != string(completed) || !strings.HasPrefix(message, c.message) || odd.GetLabels()[activeKey] != "" ||
					len(odd.GetFinalizers()) > 0 {
					return fmt.Errorf("%s: %v", c.why, odd)
				}
				return nil
			})
			b.podReady(pod)
			good := b.ask("good", pod)
			b.becomes(good, ended(""))
			b.Still()
			if n := len(b.Asked()); n > 20 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

// malformed stores a request about a pod that was taken out of traffic for it.
func (b *bench) malformed(pod *corev1.Pod, hook, status string) *unstructured.Unstructured {
	b.Helper()
	text := fmt.Sprintf(
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"namespace":%q,"name":"odd",
		"finalizers":[%q],
		"labels":{"crr.apps.kruise.io/pod-uid":%q,"crr.apps.kruise.io/node-name":%q,"crr.apps.kruise.io/active":"true"}},
		"spec":{"podName":"web","containers":[{"name":"app","preStop":%s}]}}`,
		b.Namespace, finalizer, pod.UID, nodeName, hook)
	odd := &unstructured.Unstructured{}
	if err := odd.UnmarshalJSON([]byte(text)); err != nil {
		b.Fatal(err)
	}
	if err := b.Client.Create(b.Context(), odd); err != nil {
		b.Fatal(err)
	}
	if err := b.Client.Status().Patch(b.Context(), odd,
		client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		b.Fatal(err)
	}
	return odd
}
