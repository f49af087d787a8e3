package podreadiness

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// events are those of pods that wait, and those by which the cache shows a condition that was set.
func (r *Reconciler) events() predicate.Predicate {
	relevant := func(o client.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && (waits(pod) || r.set.has(client.ObjectKeyFromObject(pod)))
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return relevant(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return relevant(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return r.set.has(client.ObjectKeyFromObject(e.Object)) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
