//go:build envtest

package process

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// testNative writes what the reconciler of StatefulSets and DaemonSets of apps writes: refused without the rights of
// config/native, and allowed with them.
func (g *policyGround) testNative(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: inShop("native")}
	labels := map[string]string{"app": "native"}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template = corev1.PodTemplateSpec{Spec: podOf(inShop("a")).Spec}
	set.Spec.Template.Labels = labels
	pod := podOf(inShop("native-0"), controlledBy("apps/v1", "StatefulSet"), started())
	other := podOf(inShop("native-1"), controlledBy("apps/v1", "ReplicaSet"), started())
	g.create(t, set, pod, other)
	const (
		status = `{"metadata":{"annotations":{"kruisekit.dev/rollout-status":"{}"}}}`
		image  = `{"spec":{"containers":[{"name":"main","image":"other:2"}]}}`
		subset = "that a UnitedDeployment controls"
		alone  = "a workload of apps.kruise.io controls"
	)
	try(t, map[string]attempt{
		"status without rights": {"the gate is off", g.patches(set, merge, status), subset},
		"image without rights":  {"the gate is off", g.patches(pod, strategic, image), alone},
	})
	if _, err := g.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../../config/native"); err != nil {
		t.Fatal(err)
	}
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = g.patches(pod, strategic, image)(ctx)
			return last == nil, nil
		}); err != nil {
		t.Fatalf("an image with rights: %v", last)
	}
	try(t, map[string]attempt{
		"status":             {"the rollout goes on", g.patches(set, merge, status), ""},
		"resize":             {"the template asks for it", g.patchesPart("resize", pod, resize("150m")), ""},
		"another annotation": {"its users own it", g.patches(set, merge, `{"metadata":{"annotations":{"a":"b"}}}`), subset},
		"status with more": {
			"its pods would be deleted",
			g.patches(set, merge, `{"metadata":{"annotations":{"kruisekit.dev/rollout-status":"{1}"}},"spec":{"replicas":0}}`), subset,
		},
		"of a ReplicaSet": {"nothing asks for it", g.patches(other, strategic, image), alone},
		"a pod of the set": {
			"its controller creates it", g.creates(podOf(inShop("native-2"), controlledBy("apps/v1", "StatefulSet"))), alone,
		},
		"the set goes": {"its pods would go", g.deletes(set), subset},
		"a finalizer of a pod": {
			"others rely on it", g.patches(pod, merge, `{"metadata":{"finalizers":["a.b/c"]}}`), "must not change finalizers",
		},
	})
}
