package cloneset

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/growth"
)

// warehouse is a cache that has everything, and an API server that says yes to deletions and statuses and takes note.
// All else panics: a pass that is measured does not do it.
type warehouse struct {
	client.Client

	set       *v1beta1.CloneSet
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
	deleted   atomic.Int64 // several are deleted at the same time
}

func (w *warehouse) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if meta, is := into.(*metav1.PartialObjectMetadata); is {
		meta.ObjectMeta = w.set.ObjectMeta
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.set)
	into.(*unstructured.Unstructured).Object = content
	return err
}

// List gives shallow copies, as the cache does when it is asked not to copy.
func (w *warehouse) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = shallow(w.pods)
	case *appsv1.ControllerRevisionList:
		list.Items = shallow(w.revisions)
	}
	return nil
}

func shallow[T any](all []*T) []T {
	items := make([]T, len(all))
	for i := range all {
		items[i] = *all[i]
	}
	return items
}

func (w *warehouse) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	w.deleted.Add(1)
	return nil
}

func (*warehouse) Status() client.SubResourceWriter { return statuses{} }

type statuses struct{ client.SubResourceWriter }

func (statuses) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// stock makes a set of n pods that run its first revision; where updating is above 0, that many of them are on their
// way to the second, whose image does not start, and the budget allows no more.
func stock(tb testing.TB, n, updating int) *warehouse {
	tb.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}}
	set.Spec.Replicas = ptr.To(int32(n))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
	w := &warehouse{set: set}
	first := w.keep(tb, 1)
	set.Status.CurrentRevision = first.Name
	second := first
	if updating > 0 {
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
		second = w.keep(tb, 2)
	}
	for i := range n {
		pod := w.pod(i, first.Name, "web:1")
		if i < updating {
			pod.Labels[kruise.PodRevisionLabelKey] = second.Name
			pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStateUpdating)
			pod.Annotations[kruise.InPlaceUpdateStateKey] = `{"revision":"` + second.Name +
				`","updateTimestamp":"2026-01-02T03:04:05Z",` +
				`"lastContainerStatuses":{"web":{"imageID":"sha256:web:1"}},"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["web"]}]}`
			pod.Spec.Containers[0].Image = "web:2"
			pod.Status.Conditions[0].Status, pod.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionFalse
		}
		w.pods = append(w.pods, pod)
	}
	return w
}

// keep stores the set's template as a revision.
func (w *warehouse) keep(tb testing.TB, number int64) *appsv1.ControllerRevision {
	tb.Helper()
	data, err := revision.Encode(&w.set.Spec.Template)
	if err != nil {
		tb.Fatal(err)
	}
	r := revision.Resolve(revision.Input{Owner: w.set.Name, Data: data, Have: w.revisions})
	rev := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, UID: types.UID(r.Name), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(w.set, gvk()),
		}},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
	w.revisions = append(w.revisions, rev)
	return rev
}

func (w *warehouse) pod(i int, revisionName, image string) *corev1.Pod {
	ready := metav1.Unix(int64(1_700_000_000+i), 0)
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: ready}
	}
	name := fmt.Sprintf("web-%05d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "shop",
			Name:              name,
			UID:               types.UID(name),
			CreationTimestamp: ready,
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(w.set, gvk())},
			Annotations:       map[string]string{},
			Labels: map[string]string{
				"app": "web", kruise.PodRevisionLabelKey: revisionName,
				kruise.PodTemplateHashLabelKey: revision.Short(revisionName),
				kruise.CloneSetInstanceIDKey:   name[4:], kruise.LifecycleStateKey: string(kruise.LifecycleStateNormal),
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%500), Containers: []corev1.Container{{Name: "web", Image: image}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
		},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{condition(corev1.PodReady), condition(kruise.InPlaceUpdateReady)},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: image, ImageID: "sha256:" + image, Ready: true}},
		},
	}
}

func (w *warehouse) pass(tb testing.TB) {
	tb.Helper()
	r, err := New(w, Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.Reconcile(tb.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)}); err != nil {
		tb.Fatal(err)
	}
}

// measured are what is measured, by the number of pods.
func measured(tb testing.TB) map[string]func(n int) *warehouse {
	tb.Helper()
	return map[string]func(n int) *warehouse{
		"idle":    func(n int) *warehouse { return stock(tb, n, 0) },
		"rollout": func(n int) *warehouse { return stock(tb, n, n/5) },
		"scale in by half": func(n int) *warehouse {
			w := stock(tb, n, 0)
			w.set.Spec.Replicas = ptr.To(int32(n / 2))
			return w
		},
		"long podsToDelete": func(n int) *warehouse {
			w := stock(tb, n, 0)
			w.set.Spec.ScaleStrategy.PodsToDelete = slices.Repeat([]string{w.pods[0].Name}, 10*n)
			return w
		},
	}
}

// A pass over a large set, without what the API server and the network cost.
func BenchmarkReconcile(b *testing.B) {
	for name, build := range measured(b) {
		for _, n := range []int{10, 100, 1_000, 10_000} {
			w := build(n)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.pass(b)
				}
			})
		}
	}
}

// Ten times the pods cost about ten times as much, in whatever a set is doing.
func TestPassesGrowWithThePods(t *testing.T) {
	const n, times = 1_000, 10
	for name, build := range measured(t) {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, n, times, func(n int) func() {
				w := build(n)
				return func() { w.pass(t) }
			})
			if name == "scale in by half" {
				w := build(times * n)
				if w.pass(t); w.deleted.Load() != int64(times*n/2) {
					t.Errorf("%d pods deleted, want half of them", w.deleted.Load())
				}
			}
		})
	}
}
