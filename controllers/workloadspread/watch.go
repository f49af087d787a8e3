package workloadspread

import (
	"cmp"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

// period between the reconciles that events of pods cause: a queue keeps the earliest time of a request, so that a
// thousand pods that are created at once cost few writes.
const period = time.Second

// spreadEvents requeues a WorkloadSpread whose spec has changed at once, and one whose books have changed when their
// records end.
func (r *Reconciler) spreadEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watches.Queue) { q.Add(r.put(ctx, e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watches.Queue) {
			request := r.put(ctx, e.ObjectNew)
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				q.Add(request)
				return
			}
			q.AddAfter(request, subset.CreatingTimeout+period)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watches.Queue) {
			name := client.ObjectKeyFromObject(e.Object)
			r.index.Delete(name)
			q.Add(ctrl.Request{NamespacedName: name})
		},
	}
}

// put adds a WorkloadSpread to the index, and returns the request for it.
func (r *Reconciler) put(ctx context.Context, o client.Object) ctrl.Request {
	name := client.ObjectKeyFromObject(o)
	if raw, ok := o.(*unstructured.Unstructured); ok {
		if err := r.index.Put(raw); err != nil {
			log.FromContext(ctx).Error(err, "Failed to decode a WorkloadSpread", "workloadSpread", name)
		}
	}
	return ctrl.Request{NamespacedName: name}
}

// chain returns a workload, and the Deployment that controls it.
func (r *Reconciler) chain(ctx context.Context, of replicas.Workload) []replicas.Workload {
	if top, err := r.targets.Finder.Top(ctx, of); err == nil && top.Target != of.Target {
		return []replicas.Workload{of, top}
	}
	return []replicas.Workload{of}
}

// spreadsOf returns the WorkloadSpreads whose targets are among workloads.
func (r *Reconciler) spreadsOf(workloads ...replicas.Workload) []types.NamespacedName {
	var names []types.NamespacedName
	for _, of := range workloads {
		for _, ws := range r.index.Of(of.Namespace, of.Target) {
			names = append(names, client.ObjectKeyFromObject(ws))
		}
	}
	return names
}

// podEvents requeues the WorkloadSpreads of a pod when the pod counts differently: those of its controllers, and the
// one that its annotation names, whose target may be above a controller of a further kind.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
		pod := cmp.Or(after, before)
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !r.index.Any(pod.Namespace) ||
			before != nil && after != nil && !countsOtherwise(before, after) {
			return
		}
		of := replicas.Of(pod.Namespace, owner)
		names := r.spreadsOf(r.chain(ctx, of)...)
		if m, ok := subset.MatchOf(pod); ok && !workloadspread.BuiltIn(of.GroupKind()) {
			names = append(names, types.NamespacedName{Namespace: pod.Namespace, Name: m.Name})
		}
		for _, name := range names {
			if r.index.Named(name) != nil {
				q.AddAfter(ctrl.Request{NamespacedName: name}, period)
			}
		}
	})
}

// countsOtherwise reports whether a pod counts differently after a change.
func countsOtherwise(before, after *corev1.Pod) bool {
	return subset.Active(before) != subset.Active(after) || before.Spec.NodeName != after.Spec.NodeName ||
		before.Annotations[kruise.MatchedWorkloadSpreadKey] != after.Annotations[kruise.MatchedWorkloadSpreadKey] ||
		before.Annotations[corev1.PodDeletionCost] != after.Annotations[corev1.PodDeletionCost] ||
		!maps.Equal(before.Labels, after.Labels) || subset.Unschedulable(before) != subset.Unschedulable(after)
}

// workloadEvents requeues the WorkloadSpreads of a workload that may want other pods, and of the one that controls it.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	requeue := func(_ context.Context, o client.Object, q watches.Queue) {
		workloads := []replicas.Workload{{
			Namespace: o.GetNamespace(), Target: pub.Target{Group: kind.Group, Kind: kind.Kind, Name: o.GetName()},
		}}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			workloads = append(workloads, replicas.Of(o.GetNamespace(), owner))
		}
		for _, name := range r.spreadsOf(workloads...) {
			q.Add(ctrl.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watches.Queue) { requeue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watches.Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			if before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
				(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) {
				requeue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watches.Queue) { requeue(ctx, e.Object, q) },
	}
}
