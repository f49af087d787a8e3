package podreadiness

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// events are those of pods that wait, and those by which the cache shows a condition that was set.
func (r *Reconciler) events() predicate.Predicate {
	isSet := func(o client.Object) bool { return r.set.Recall(client.ObjectKeyFromObject(o)).pod != "" }
	relevant := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && (waits(pod) || isSet(o))
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return relevant(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return relevant(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isSet(e.Object) },
	}
}
