package workloadspread

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// spreadEvents requeues a WorkloadSpread whose spec has changed at once, and one whose books have changed when their
// records end. A change of the spec requeues the rivals as well, which get or lose pods by the change.
func (r *Reconciler) spreadEvents() handler.EventHandler {
	request := func(o client.Object) ctrl.Request { return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)} }
	add := func(ctx context.Context, o client.Object, known *subset.Spread, q queue) {
		r.pace.end(client.ObjectKeyFromObject(o), r.api.Now())
		q.Add(request(o))
		for _, rival := range r.rivalsOf(ctx, known) {
			q.Add(request(rival))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, r.file(e.Object), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			known := r.file(e.ObjectNew)
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				add(ctx, e.ObjectNew, known, q)
				return
			}
			q.AddAfter(request(e.ObjectNew), subset.CreatingTimeout+together)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			name := client.ObjectKeyFromObject(e.Object)
			known := r.index.Named(name)
			r.index.Delete(name)
			r.pace.forget(name)
			add(ctx, e.Object, known, q)
		},
	}
}

// file files a WorkloadSpread in the index, and returns it; the one that the index had where the new one cannot be
// read.
func (r *Reconciler) file(o client.Object) *subset.Spread {
	name := client.ObjectKeyFromObject(o)
	before := r.index.Named(name)
	if raw, is := o.(*unstructured.Unstructured); is && r.index.Put(raw) != nil {
		r.index.Delete(name)
		return before
	}
	return r.index.Named(name)
}

// rivalsOf returns the other WorkloadSpreads of the target of a WorkloadSpread, and those of what controls the target.
// Those of further kinds are reconciled by time.
func (r *Reconciler) rivalsOf(ctx context.Context, ws *subset.Spread) []*subset.Spread {
	if ws == nil {
		return nil
	}
	target, is := workloadspread.TargetOf(ws)
	if !is {
		return nil
	}
	of := replicas.Workload{Namespace: ws.Namespace, Target: target}
	all := slices.Clone(r.index.Of(of.Namespace, target))
	if top, err := r.targets.Finder.Top(ctx, of); err == nil && top.Target != target {
		all = append(all, r.index.Of(of.Namespace, top.Target)...)
	}
	return slices.DeleteFunc(all, func(other *subset.Spread) bool { return other.Name == ws.Name })
}

// podEvents requeues the WorkloadSpread of a pod when the pod counts differently.
func (r *Reconciler) podEvents() handler.EventHandler {
	requeue := func(ctx context.Context, o client.Object, q queue) {
		for _, name := range r.spreadsOf(ctx, o) {
			q.AddAfter(ctrl.Request{NamespacedName: name}, r.pace.delay(name, creatingOf(r.index.Named(name)), r.api.Now()))
		}
	}
	return watches.Direct(handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { requeue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if before, is := e.ObjectOld.(*corev1.Pod); is {
				if after, is := e.ObjectNew.(*corev1.Pod); is && countsOtherwise(before, after) {
					requeue(ctx, after, q)
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { requeue(ctx, e.Object, q) },
	})
}

// countsOtherwise reports whether a pod counts differently after a change.
func countsOtherwise(before, after *corev1.Pod) bool {
	return subset.Active(before) != subset.Active(after) || before.Spec.NodeName != after.Spec.NodeName ||
		before.Annotations[kruise.MatchedWorkloadSpreadKey] != after.Annotations[kruise.MatchedWorkloadSpreadKey] ||
		before.Annotations[corev1.PodDeletionCost] != after.Annotations[corev1.PodDeletionCost] ||
		!maps.Equal(before.Labels, after.Labels) || unschedulable(before) != unschedulable(after)
}

func unschedulable(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// spreadsOf returns the WorkloadSpreads of the controller of a pod, and of what controls that.
func (r *Reconciler) spreadsOf(ctx context.Context, o client.Object) []client.ObjectKey {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || !r.index.Any(o.GetNamespace()) {
		return nil
	}
	if pod, is := o.(*corev1.Pod); is && !workloadspread.BuiltIn(replicas.Of(o.GetNamespace(), owner).GroupKind()) {
		return r.spreadsOfDistant(pod)
	}
	of := replicas.Of(o.GetNamespace(), owner)
	all := r.index.Of(o.GetNamespace(), of.Target)
	if top, err := r.targets.Finder.Top(ctx, of); err == nil && top.Target != of.Target {
		all = append(slices.Clip(all), r.index.Of(o.GetNamespace(), top.Target)...)
	}
	keys := make([]client.ObjectKey, 0, len(all))
	for _, ws := range all {
		keys = append(keys, client.ObjectKeyFromObject(ws))
	}
	return keys
}

// spreadsOfDistant returns the WorkloadSpread that the annotation of a pod names, whose target may be above the
// controller of the pod, and those of the controller.
func (r *Reconciler) spreadsOfDistant(pod *corev1.Pod) []client.ObjectKey {
	var keys []client.ObjectKey
	if m, is := subset.MatchOf(pod); is {
		if key := (client.ObjectKey{Namespace: pod.Namespace, Name: m.Name}); r.index.Named(key) != nil {
			keys = append(keys, key)
		}
	}
	for _, ws := range r.index.Of(pod.Namespace, replicas.Of(pod.Namespace, metav1.GetControllerOfNoCopy(pod)).Target) {
		if key := client.ObjectKeyFromObject(ws); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// watchWorkloads watches the metadata of workloads from the first WorkloadSpread on, so that a cluster without any pays
// nothing.
func (r *Reconciler) watchWorkloads() error {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.started || r.controller == nil {
		return nil
	}
	for _, kind := range subset.Targets() {
		mapping, err := r.targets.Finder.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", kind, err)
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := r.controller.Watch(source.Kind[client.Object](r.cache, object, r.workloadEvents(kind))); err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	r.started = true
	return nil
}

// wantsOtherwise reports whether a target may want other pods after a change.
func wantsOtherwise(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
}

// workloadEvents requeues the WorkloadSpreads of a workload, and of the one that controls it. A target that writes its
// status may have settled.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	of := func(o client.Object) []*subset.Spread {
		return r.index.Of(o.GetNamespace(), replicas.Of(o.GetNamespace(), &metav1.OwnerReference{
			APIVersion: kind.WithVersion("v1").GroupVersion().String(), Kind: kind.Kind, Name: o.GetName(),
		}).Target)
	}
	requeue := func(ctx context.Context, o client.Object, q queue) {
		names := r.spreadsOf(ctx, o)
		for _, ws := range of(o) {
			names = append(names, client.ObjectKeyFromObject(ws))
		}
		for _, name := range names {
			r.pace.end(name, r.api.Now())
			q.Add(ctrl.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { requeue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			switch {
			case wantsOtherwise(e):
				requeue(ctx, e.ObjectNew, q)
			case e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion():
				for _, ws := range of(e.ObjectNew) {
					name := client.ObjectKeyFromObject(ws)
					if f := ws.Spec.TargetFilter; kind == workloadspread.Jobs() || f != nil && len(f.ReplicasPathList) > 0 {
						continue // each pass reads the target live
					}
					if r.pace.reported(name, e.ObjectNew.GetGeneration(), r.api.Now()) {
						q.AddAfter(ctrl.Request{NamespacedName: name}, settling)
					}
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { requeue(ctx, e.Object, q) },
	}
}
