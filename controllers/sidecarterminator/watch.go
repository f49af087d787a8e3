package sidecarterminator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// podEvents are those of pods whose main containers have finished.
func podEvents() predicate.Predicate {
	concerned := func(o client.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && finish.Concerns(pod)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return concerned(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return concerned(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// requestEvents are those of our requests: one has ended or is gone, after which it may have to be made again, and the
// cache shows a new one, which the ledger of own writes then forgets.
func requestEvents() predicate.Predicate {
	ours := func(o client.Object) bool {
		owner := metav1.GetControllerOf(o)
		return owner != nil && owner.Kind == "Pod" && o.GetName() == finish.RequestName(owner.UID)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return ours(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		DeleteFunc:  func(e event.DeleteEvent) bool { return ours(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return ours(e.ObjectNew) && !ended(e.ObjectOld) && ended(e.ObjectNew)
		},
	}
}

// ended says whether nothing more happens for a request.
func ended(o client.Object) bool {
	raw, is := o.(*unstructured.Unstructured)
	if !is {
		return false
	}
	phase, _, _ := stored.Value[string](raw, "status", "phase")
	_, completed, _ := stored.Field(raw, "status", "completionTime")
	return completed || phase == string(v1beta1.ContainerRecreateRequestCompleted)
}
