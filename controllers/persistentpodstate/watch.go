package persistentpodstate

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// together is how long events are gathered, so that pods that become ready together cost one write.
const together = time.Second

func later(q queue, all []types.NamespacedName) {
	for _, name := range all {
		q.AddAfter(ctrl.Request{NamespacedName: name}, together)
	}
}

// stateEvents reconciles a PersistentPodState at once where its spec or its annotations have changed.
func (r *Reconciler) stateEvents() handler.EventHandler {
	put := func(o client.Object) {
		if raw, is := o.(*unstructured.Unstructured); is {
			_ = r.index.Put(raw) // the pass reports what cannot be decoded
		}
	}
	request := func(o client.Object) ctrl.Request { return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)} }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { put(e.Object); q.Add(request(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			put(e.ObjectNew)
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				q.Add(request(e.ObjectNew))
				return
			}
			q.AddAfter(request(e.ObjectNew), together) // another writer may have changed the records
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.index.Delete(client.ObjectKeyFromObject(e.Object))
			q.Add(request(e.Object)) // a workload may ask for another one
			if state := stored.Whole[podstate.State](e.Object); state != nil {
				q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: state.Namespace, Name: state.Spec.TargetReference.Name}})
			}
		},
	}
}

// podEvents reconciles the PersistentPodStates of the workload of a pod that becomes ready, ends or leaves.
func (r *Reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, is := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			if is && also && counts(before, after) {
				later(q, r.ofPod(after))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(q, r.ofPod(e.Object)) },
	}
}

// counts reports whether a change of a pod may change a record. A pod that is no longer ready changes none.
func counts(before, after *corev1.Pod) bool {
	return podstate.Ready(after) && !podstate.Ready(before) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
		before.Status.Phase != after.Status.Phase && (after.Status.Phase == corev1.PodFailed || after.Status.Phase == corev1.PodSucceeded)
}

func (r *Reconciler) ofPod(pod client.Object) []types.NamespacedName {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	of, is := podstate.Refer(v1beta1.TargetReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
	if !is {
		return nil
	}
	return names(r.index, pod.GetNamespace(), of)
}

// nodeEvents reconciles the PersistentPodStates with records of a node that leaves or changes its labels, and those that miss a node.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { later(q, r.index.Missing()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				later(q, slices.Concat(r.index.On(e.ObjectNew.GetName()), r.index.Missing()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(q, r.index.On(e.Object.GetName())) },
	}
}

// workloadEvents reconciles the PersistentPodStates of a workload, and the one that it asks for.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	add := func(q queue, o client.Object, asked bool) {
		all := names(r.index, o.GetNamespace(), podstate.Target{Group: kind.Group, Kind: kind.Kind, Name: o.GetName()})
		if name := client.ObjectKeyFromObject(o); (asked || podstate.Asks(o.GetAnnotations())) && !slices.Contains(all, name) {
			all = append(all, name)
		}
		for _, name := range all {
			q.Add(ctrl.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld, e.ObjectNew
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
				!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) {
				add(q, is, podstate.Asks(was.GetAnnotations()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, false) },
	}
}
