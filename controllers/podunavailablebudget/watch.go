package podunavailablebudget

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/pub"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

func add(q queue, namespace string, all []wake) {
	for _, w := range all {
		request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: w.budget}}
		if w.after > 0 {
			q.AddAfter(request, w.after)
		} else {
			q.Add(request)
		}
	}
}

// budgetEvents requeues a budget at each of its events, and the others of the namespace when it is deleted: they may
// stamp its pods.
func (r *Reconciler) budgetEvents() handler.EventHandler {
	self := func(o client.Object, q queue) {
		q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { self(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { self(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			self(e.Object, q)
			add(q, e.Object.GetNamespace(), r.tracker.unstamped(e.Object.GetNamespace()))
		},
	}
}

// podEvents counts pods. When the process starts, no budget is followed yet, and the first reconcile of a budget lists
// its pods.
func (r *Reconciler) podEvents() handler.EventHandler {
	set := func(o client.Object, q queue) {
		if pod, ok := o.(*corev1.Pod); ok {
			add(q, pod.Namespace, r.tracker.set(pod))
		}
	}
	return watches.Direct(handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { set(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { set(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				add(q, pod.Namespace, r.tracker.remove(pod))
			}
		},
	})
}

// watchable are the kinds of workloads that are watched where they are installed.
func watchable() []schema.GroupKind {
	kruise := appsv1beta1.GroupVersion.Group
	return []schema.GroupKind{
		replicas.Deployments(), replicas.ReplicaSets(),
		{Group: "apps", Kind: "StatefulSet"},
		{Group: kruise, Kind: "CloneSet"},
		{Group: kruise, Kind: "StatefulSet"},
	}
}

// watchWorkloads watches the metadata of workloads from the first budget on, so that a cluster without budgets pays
// nothing.
func (r *Reconciler) watchWorkloads() error {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.started {
		return nil
	}
	for _, kind := range watchable() {
		if r.workloads.IsWatched(replicas.Workload{Target: pub.Target{Group: kind.Group, Kind: kind.Kind}}) {
			continue
		}
		mapping, err := r.workloads.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", kind, err)
		}
		if r.controller != nil {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(mapping.GroupVersionKind)
			if err := r.controller.Watch(source.Kind[client.Object](r.cache, object,
				r.workloadEvents(kind), changes())); err != nil {
				return fmt.Errorf("watch %s: %w", kind, err)
			}
		}
		r.workloads.Watch(kind, mapping.GroupVersionKind)
	}
	r.started = true
	return nil
}

// changes are the events after which the replicas or the owners of pods may be others.
func changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew)
	}}
}

func controllerOf(o client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// workloadEvents requeues the budgets whose total depends on a workload, or on the one that controls it.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		touched := []pub.Target{{Group: kind.Group, Kind: kind.Kind, Name: o.GetName()}}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			touched = append(touched, replicas.Of(o.GetNamespace(), owner).Target)
		}
		var all []ctrl.Request
		for _, w := range r.tracker.touched(o.GetNamespace(), touched...) {
			all = append(all, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: w.budget}})
		}
		return all
	})
}
