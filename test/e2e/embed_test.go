//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// The example is what an operator's author reads first: it must do what it says, with nothing of ours in the cluster.
func (p *programs) testEmbedExample(t *testing.T, c *cluster.Cluster) {
	if err := c.InstallCRDs(t.Context(), "../../examples/embed/fleet.yaml"); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, c)
	images := map[string]image.Image{}
	for _, tag := range []string{"1", "2"} {
		images[tag] = c.Push(t, image.Spec{Name: "embed/web:" + tag})
	}
	f.create(t, images["1"].Name)
	p.runExample(t, c)
	f.waitFor(t, "three ready pods", func(pods []corev1.Pod) error { return allOf(pods, 3, images["1"], 0) })
	first := uids(f.pods(t))

	f.patch(t, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+images["2"].Name+`"}]`)
	least := 3
	f.waitFor(t, "the new image in the same pods", func(pods []corev1.Pod) error {
		least = min(least, readyOf(pods))
		return allOf(pods, 3, images["2"], 1)
	})
	if least < 2 {
		t.Errorf("%d of 3 pods were ready during the update of the image, and 1 may be unavailable", least)
	}
	if got := uids(f.pods(t)); !same(got, first) {
		t.Errorf("pods %v became %v: they were recreated", first, got)
	}

	f.patch(t, `[{"op":"add","path":"/spec/template/metadata/labels","value":{"tier":"web"}}]`)
	f.waitFor(t, "the new label, with no restart", func(pods []corev1.Pod) error {
		for i := range pods {
			if pods[i].Labels["tier"] != "web" {
				return fmt.Errorf("%s has labels %v", pods[i].Name, pods[i].Labels)
			}
		}
		return allOf(pods, 3, images["2"], 1)
	})

	f.patch(t, `[{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"LEVEL","value":"debug"}]}]`)
	f.waitFor(t, "new pods for what cannot change in place", func(pods []corev1.Pod) error {
		for i := range pods {
			if first[pods[i].UID] {
				return fmt.Errorf("%s is still there", pods[i].Name)
			}
		}
		return allOf(pods, 3, images["2"], 0)
	})

	f.patch(t, `[{"op":"replace","path":"/spec/replicas","value":1}]`)
	f.waitFor(t, "one pod", func(pods []corev1.Pod) error { return allOf(pods, 1, images["2"], 0) })
}

// runExample runs the program until the test ends.
func (p *programs) runExample(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.program(t, "embed"))
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait()
		if out, err := os.ReadFile(said.Name()); err == nil && t.Failed() {
			t.Logf("the example said:\n%s", out)
		}
	})
}

// theFleet is the made-up resource of the example.
type theFleet struct {
	client    client.Client
	namespace string
}

func newFleet(t *testing.T, c *cluster.Cluster) *theFleet {
	t.Helper()
	return &theFleet{client: c.Client, namespace: c.Namespace(t)}
}

func (f *theFleet) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"})
	u.SetNamespace(f.namespace)
	u.SetName("web")
	return u
}

func (f *theFleet) create(t *testing.T, image string) {
	t.Helper()
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64),
		ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
		Containers:                    []corev1.Container{{Name: "web", Image: image}},
	}}
	raw, err := json.Marshal(map[string]any{"replicas": 3, "maxUnavailable": 1, "template": template})
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	u := f.object()
	u.Object["spec"] = spec
	if err := f.client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func (f *theFleet) patch(t *testing.T, patch string) {
	t.Helper()
	if err := f.client.Patch(t.Context(), f.object(), client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (f *theFleet) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := f.client.List(t.Context(), &pods, client.InNamespace(f.namespace)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func (f *theFleet) waitFor(t *testing.T, what string, check func([]corev1.Pod) error) {
	t.Helper()
	t.Log("waiting for", what)
	eventually(t, func(context.Context) error { return check(f.pods(t)) })
}

// allOf says what keeps the pods from being so many, ready, running an image, after so many restarts.
func allOf(pods []corev1.Pod, want int, image image.Image, restarts int32) error {
	if len(pods) != want || readyOf(pods) != want {
		return fmt.Errorf("%d pods of which %d are ready, want %d", len(pods), readyOf(pods), want)
	}
	for i := range pods {
		s := pods[i].Status.ContainerStatuses[0]
		if !runs(s, image) || s.RestartCount != restarts {
			return fmt.Errorf("%s runs %s (%s) after %d restarts, want %s after %d",
				pods[i].Name, s.Image, s.ImageID, s.RestartCount, image.Name, restarts)
		}
	}
	return nil
}

func readyOf(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if ready(&pods[i]) {
			n++
		}
	}
	return n
}

func uids(pods []corev1.Pod) map[types.UID]bool {
	all := map[types.UID]bool{}
	for i := range pods {
		all[pods[i].UID] = true
	}
	return all
}

func same(a, b map[types.UID]bool) bool {
	for uid := range a {
		if !b[uid] {
			return false
		}
	}
	return len(a) == len(b)
}
