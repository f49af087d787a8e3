//go:build envtest

package cloneset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// testHostPorts: in the network of its host, a container has its port there, and the template says so.
func testHostPorts(t *testing.T, g *reviewtest.Ground) {
	set := newSet(t, "v1beta1", g.Namespace(t), `{"template":{"spec":{"hostNetwork":true,
		"containers":[{"name":"main","image":"app:1","ports":[{"containerPort":80}]}]}}}`)
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	containers := reviewtest.Field(set, "spec", "template", "spec", "containers").([]any)
	port := containers[0].(map[string]any)["ports"].([]any)[0].(map[string]any)
	if port["hostPort"] != int64(80) || port["protocol"] != "TCP" {
		t.Errorf("the port is %v", port)
	}
}

// testPodsToDelete names pods of the set and others.
func testPodsToDelete(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		set := newSet(t, version, namespace, "")
		if err := g.Client.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		yes := true
		owner := []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: set.GetName(), UID: set.GetUID(), Controller: &yes,
		}}
		mine := runPod(t, g, namespace, "mine", owner)
		runPod(t, g, namespace, "stray", nil)
		leaving := runPod(t, g, namespace, "leaving", owner)
		leaving.Finalizers = []string{"example.com/hold"}
		if err := g.Client.Update(t.Context(), leaving); err != nil {
			t.Fatal(err)
		}
		if err := g.Client.Delete(t.Context(), leaving); err != nil {
			t.Fatal(err)
		}
		try := func(names ...any) error {
			changed := set.DeepCopy()
			_ = unstructured.SetNestedSlice(changed.Object, names, "spec", "scaleStrategy", "podsToDelete")
			return g.Client.Update(t.Context(), changed, client.DryRunAll)
		}
		if err := try(mine.Name); err != nil {
			t.Errorf("%s: a pod of the set: %v", version, err)
		}
		for _, name := range []any{"stray", "leaving", "nobody", "No Name"} {
			refusedAt(t, try(mine.Name, name), "spec.scaleStrategy.podsToDelete")
		}
		leaving.Finalizers = nil
		if err := g.Client.Patch(t.Context(), leaving, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Error(err)
		}
	}
}

func runPod(t *testing.T, g *reviewtest.Ground, namespace, name string, owner []metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "a"}, OwnerReferences: owner},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	if err := g.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// testOnDelete writes a set of the newer version through the older, as old clients do. A new one they cannot make.
func testOnDelete(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	const onDelete = `{"updateStrategy":{"type":"OnDelete"}}`
	refusedAt(t, g.Client.Create(t.Context(), newSet(t, "v1alpha1", namespace, onDelete)), "spec.updateStrategy.type")
	other := newSet(t, "v1alpha1", namespace, "")
	if err := g.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(other.Object, "OnDelete", "spec", "updateStrategy", "type")
	refusedAt(t, g.Client.Update(t.Context(), other), "spec.updateStrategy.type")
	set := newSet(t, "v1beta1", namespace, `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"paused":true}}}`)
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	alpha := newSet(t, "v1alpha1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), alpha); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(alpha.Object, int64(3), "spec", "replicas")
	if err := g.Client.Update(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if reviewtest.Field(set, "spec", "updateStrategy", "type") != "OnDelete" || reviewtest.Field(set, "spec", "updateStrategy", "rollingUpdate", "paused") != true {
		t.Errorf("the strategy is now %v", reviewtest.Field(set, "spec", "updateStrategy"))
	}
}

// testRefusals has what could never work, and what only looks like it. OnDelete has a test of its own.
func testRefusals(t *testing.T, g *reviewtest.Ground) {
	const block = "spec.updateStrategy.rollingUpdate."
	parallel := func(n string) string {
		return `{"updateStrategy":{"rollingUpdate":{"inPlaceUpdateStrategy":{"imagePreDownloadParallelism":` + n + `}}}}`
	}
	cases := map[string]struct{ why, version, patch, at string }{
		"surge in place":            {"there is none", "v1alpha1", `{"updateStrategy":{"type":"InPlaceOnly","maxSurge":1}}`, "spec.updateStrategy.maxSurge"},
		"surge in place, v1beta1":   {"there is none", "v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly","maxSurge":1}}}`, block + "maxSurge"},
		"no budget":                 {"nothing could be updated", "v1alpha1", `{"replicas":2,"updateStrategy":{"maxUnavailable":0,"maxSurge":0}}`, "spec.updateStrategy.maxUnavailable"},
		"no budget, v1beta1":        {"nothing could be updated", "v1beta1", `{"replicas":2,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":0}}}`, block + "maxUnavailable"},
		"surge alone, v1beta1":      {"that is a budget; the reference errs here", "v1beta1", `{"replicas":2,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}`, ""},
		"deadline before readiness": {"it could never be kept", "v1alpha1", `{"minReadySeconds":10,"progressDeadlineSeconds":10}`, "spec.progressDeadlineSeconds"},
		"the largest deadline":      {"it is none", "v1alpha1", `{"minReadySeconds":2147483647,"progressDeadlineSeconds":2147483647}`, ""},
		"parallelism in percent":    {"of which number?", "v1beta1", parallel(`"50%"`), block + "inPlaceUpdateStrategy.imagePreDownloadParallelism"},
		"parallelism below zero":    {"it is no number of nodes", "v1beta1", parallel(`-1`), block + "inPlaceUpdateStrategy.imagePreDownloadParallelism"},
		"parallelism in quotes":     {"it is a number", "v1beta1", parallel(`"10"`), ""},
	}
	namespace := g.Namespace(t)
	for name, c := range cases {
		err := g.Client.Create(t.Context(), newSet(t, c.version, namespace, c.patch), client.DryRunAll)
		if c.at == "" {
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.why, err)
			}
			continue
		}
		refusedAt(t, err, c.at)
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := newSet(t, version, namespace, "")
		if err := g.Client.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedField(set.Object, map[string]any{"other": "b"}, "spec", "selector", "matchLabels")
		_ = unstructured.SetNestedField(set.Object, map[string]any{"other": "b"}, "spec", "template", "metadata", "labels")
		refusedAt(t, g.Client.Update(t.Context(), set), "spec")
	}
}
