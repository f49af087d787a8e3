//go:build envtest

package spreads_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// TestServer is about one API server and two replicas.
func TestServer(t *testing.T) {
	g := newGround(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *ground)
	}{
		{"CloneSet", testCloneSet},
		{"Deployment", testDeployment},
		{"Job", testJob},
		{"Percentages", testPercentages},
		{"DryRun", testDryRun},
		{"Unconcerned", testUnconcerned},
		{"Older", testOlder},
		{"Adaptive", testAdaptive},
		{"Deleted", testDeleted},
		{"Burst", testBurst},
		{"Down", testDown},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, g) })
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("web-%d", i)
	}
	return all
}

// Subsets fill in their order, through both replicas. The pods have all that the subset adds, so that the reconciler
// patches none. A deletion opens a place at once.
func testCloneSet(t *testing.T, g *ground) {
	set := newCloneSet()
	namespace := g.spread(t, newSpread("apps.kruise.io/v1alpha1", "CloneSet", limit(2), nil), set)
	before := [2]int64{g.calls[0].Load(), g.calls[1].Load()}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 3}, g.create(t, namespace, g.owner(t, set), names(5)...)); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	for i := range before {
		if g.calls[i].Load() == before[i] {
			t.Errorf("replica %d answered nothing", i)
		}
	}
	p := &corev1.Pod{}
	if err := g.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web-0"}, p); err != nil {
		t.Fatal(err)
	}
	version := p.ResourceVersion
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
		MatchExpressions[0]
	if p.Labels["subset"] != "a" || p.Annotations[corev1.PodDeletionCost] != "200" || required.Values[0] != "a" ||
		p.Spec.Tolerations[len(p.Spec.Tolerations)-1].Key != "a" {
		t.Errorf("pod %+v", p)
	}
	g.status(t, namespace, "a 2 0;b 3 -1;")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.ResourceVersion != version {
		t.Errorf("the pod was written, %v", err)
	}
	if err := g.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1},
		g.create(t, namespace, g.owner(t, set), "web-7", "web-8")); diff != "" {
		t.Errorf("after a deletion (-want +got):\n%s", diff)
	}
	g.status(t, namespace, "a 2 0;b 4 -1;")
}

// Pods of a Deployment belong to a ReplicaSet, which no cache has seen yet, and fill the subsets once for each version.
func testDeployment(t *testing.T, g *ground) {
	d := newDeployment()
	namespace := g.Namespace(t)
	d.Namespace = namespace
	ws := newSpread("apps/v1", "Deployment", limit(1), nil)
	ws.Namespace = namespace
	for _, o := range []client.Object{d, ws} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	owners := map[string]metav1.OwnerReference{}
	for _, hash := range []string{"5f6", "7c8"} {
		r := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web-" + hash, OwnerReferences: []metav1.OwnerReference{g.owner(t, d)},
		}}
		r.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(len(owners) + 1)}
		r.Spec.Selector, r.Spec.Template = d.Spec.Selector, d.Spec.Template
		if err := g.Client.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		owners[hash] = g.owner(t, r)
	}
	create := func(ctx context.Context, hash, name string, o ...client.CreateOption) (string, error) {
		p := newPod(namespace, name, owners[hash])
		p.Labels["pod-template-hash"] = hash
		err := g.Client.Create(ctx, p, o...)
		return subsetOf(p), err
	}
	g.sent(t,
		func(ctx context.Context) error { _, err := create(ctx, "5f6", "probe", client.DryRunAll); return err }, namespace)
	for _, c := range []struct{ hash, name, want string }{
		{"5f6", "w1", "a"}, {"5f6", "w2", "b"}, {"7c8", "w3", "a"}, {"7c8", "w4", "b"},
	} {
		if got, err := create(t.Context(), c.hash, c.name); err != nil || got != c.want {
			t.Errorf("pod %s: subset %q, %v", c.name, got, err)
		}
	}
	g.status(t, namespace, "a 2 0;b 2 -1;")
	g.until(t, "old pods do not go first", func(ctx context.Context) error {
		var list corev1.PodList
		if err := g.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		got := map[string]string{}
		for i := range list.Items {
			got[list.Items[i].Name] = list.Items[i].Annotations[corev1.PodDeletionCost]
		}
		if diff := cmp.Diff(map[string]string{"w1": "100", "w2": "200", "w3": "200", "w4": "100"}, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// sent waits until pods that a function creates are sent to both replicas, which have the WorkloadSpreads of a
// namespace.
func (g *ground) sent(t *testing.T, create func(context.Context) error, namespace string) {
	t.Helper()
	g.until(t, "no pod is sent", func(ctx context.Context) error {
		if len(g.allocators[0].In(namespace)) == 0 || len(g.allocators[1].In(namespace)) == 0 {
			return errors.New("a replica does not have the WorkloadSpread")
		}
		before := g.calls[0].Load() + g.calls[1].Load()
		if err := create(ctx); err != nil {
			return err
		}
		if g.calls[0].Load()+g.calls[1].Load() == before {
			return errors.New("the pod was not sent")
		}
		return nil
	})
}

func newJob() *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	j.Spec.Template = newCloneSet().Spec.Template
	j.Spec.Template.Spec.RestartPolicy, j.Spec.Parallelism = corev1.RestartPolicyNever, ptr.To[int32](4)
	return j
}

// Pods of a Job have no costs.
func testJob(t *testing.T, g *ground) {
	j := newJob()
	namespace := g.spread(t, newSpread("batch/v1", "Job", limit(1), nil), j)
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, g.create(t, namespace, g.owner(t, j), names(2)...)); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	g.status(t, namespace, "a 1 0;b 1 -1;")
}

// A percentage is of the replicas of the target, by its scale, and follows them.
func testPercentages(t *testing.T, g *ground) {
	set := newCloneSet()
	namespace := g.spread(t, newSpread("apps.kruise.io/v1beta1", "CloneSet", ptr.To(intstr.FromString("50%")), nil), set)
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 1}, g.create(t, namespace, g.owner(t, set), names(3)...)); diff != "" {
		t.Errorf("half of 4 (-want +got):\n%s", diff)
	}
	g.status(t, namespace, "a 2 0;b 1 -1;")
	set.Spec.Replicas = ptr.To[int32](6)
	if err := g.Client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	g.status(t, namespace, "a 2 1;b 1 -1;")
	if diff := cmp.Diff(map[string]int{"a": 1}, g.create(t, namespace, g.owner(t, set), "web-9")); diff != "" {
		t.Errorf("half of 6 (-want +got):\n%s", diff)
	}
}

// A dry run shows no subset, and records nothing.
func testDryRun(t *testing.T, g *ground) {
	set := newCloneSet()
	namespace := g.spread(t, newSpread("apps.kruise.io/v1beta1", "CloneSet", limit(1)), set)
	for range 3 {
		p := newPod(namespace, "web-0", g.owner(t, set))
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil || subsetOf(p) != "" {
			t.Errorf("subset %q, %v", subsetOf(p), err)
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "": 1}, g.create(t, namespace, g.owner(t, set), names(2)...)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// Pods of other owners get no subset, and pods of other namespaces are not sent.
func testUnconcerned(t *testing.T, g *ground) {
	set := newJob()
	namespace := g.spread(t, newSpread("batch/v1", "Job", limit(1)), set)
	other := g.owner(t, set)
	other.Name = "other"
	if diff := cmp.Diff(map[string]int{"": 1}, g.create(t, namespace, other, "other-0")); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	plain := g.Namespace(t)
	before := g.calls[0].Load() + g.calls[1].Load()
	g.create(t, plain, other, "other-0")
	alone := newPod(plain, "alone", other)
	alone.OwnerReferences = nil
	if err := g.Client.Create(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Delete(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	if n := g.calls[0].Load() + g.calls[1].Load() - before; n > 0 {
		t.Errorf("%d calls", n)
	}
}

// Pods that are older than the WorkloadSpread belong to the subset of their node, and lose what was written when the
// WorkloadSpread is deleted.
func testOlder(t *testing.T, g *ground) {
	set := newCloneSet()
	namespace := g.Namespace(t)
	set.Namespace = namespace
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-" + namespace, Labels: map[string]string{"zone": "b"}}}
	for _, o := range []client.Object{set, node} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = g.Client.Delete(context.Background(), node) })
	node.Spec.Taints = nil // a new node is not ready
	if err := g.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	p := newPod(namespace, "web-0", g.owner(t, set))
	p.Spec.NodeName = node.Name
	p.Annotations = map[string]string{"mine": "stays"}
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	ws := newSpread("apps.kruise.io/v1beta1", "CloneSet", limit(2), limit(2))
	ws.Namespace = namespace
	if err := g.Client.Create(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	g.until(t, "the pod is in no subset", func(ctx context.Context) error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if subsetOf(p) != "b" || p.Labels["subset"] != "b" || p.Annotations[corev1.PodDeletionCost] != "100" {
			return fmt.Errorf("%v, %v", p.Labels, p.Annotations)
		}
		return nil
	})
	g.status(t, namespace, "a 0 2;b 1 1;")
	if err := g.Client.Delete(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	g.until(t, "annotations are left", func(ctx context.Context) error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if diff := cmp.Diff(map[string]string{"mine": "stays"}, p.Annotations); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// A pod that finds no node is deleted, and the next one goes to the next subset.
func testAdaptive(t *testing.T, g *ground) {
	set := newCloneSet()
	ws := newSpread("apps.kruise.io/v1beta1", "CloneSet", limit(2), nil)
	ws.Spec.ScheduleStrategy = appsv1beta1.WorkloadSpreadScheduleStrategy{
		Type:     appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType,
		Adaptive: &appsv1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](1)},
	}
	namespace := g.spread(t, ws, set)
	g.create(t, namespace, g.owner(t, set), "web-0")
	p := &corev1.Pod{}
	if err := g.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web-0"}, p); err != nil {
		t.Fatal(err)
	}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	if err := g.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	g.until(t, "the pod is not deleted", func(ctx context.Context) error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); client.IgnoreNotFound(err) != nil ||
			err == nil {
			return fmt.Errorf("it is there, %w", err)
		}
		return nil
	})
	g.until(t, "no replica has the condition", func(context.Context) error {
		for _, d := range g.allocators {
			for _, ws := range d.In(namespace) {
				if len(ws.Status.SubsetStatuses) == 0 || len(ws.Status.SubsetStatuses[0].Conditions) == 0 ||
					ws.Status.SubsetStatuses[0].Conditions[0].Status != metav1.ConditionFalse {
					return fmt.Errorf("status %+v", ws.Status)
				}
			}
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"b": 1}, g.create(t, namespace, g.owner(t, set), "web-1")); diff != "" {
		t.Errorf("the next pod (-want +got):\n%s", diff)
	}
}

// A WorkloadSpread that is deleted spreads no pod, and its entries go.
func testDeleted(t *testing.T, g *ground) {
	set := newJob()
	ws := newSpread("batch/v1", "Job", limit(1), nil)
	namespace := g.spread(t, ws, set)
	if err := g.Client.Delete(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	g.until(t, "pods are still sent", func(ctx context.Context) error {
		before := g.calls[0].Load() + g.calls[1].Load()
		if err := g.Client.Create(ctx, newPod(namespace, "probe", g.owner(t, set)), client.DryRunAll); err != nil {
			return err
		}
		if g.calls[0].Load()+g.calls[1].Load() > before {
			return errors.New("the pod was sent")
		}
		return nil
	})
}
