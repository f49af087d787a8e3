package sidecarterminator

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
)

// podEvents admits creates and updates of pods whose main containers have finished and whose sidecars have not.
func podEvents() predicate.Predicate {
	concerned := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && finish.Concerns(pod)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return concerned(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return concerned(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
