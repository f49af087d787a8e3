package launchpriority

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/launch"
)

// events are those of pods that wait.
func (r *Reconciler) events() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return r.concerned(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, isPod := e.ObjectOld.(*corev1.Pod)
			is, isToo := e.ObjectNew.(*corev1.Pod)
			return isPod && isToo && r.concerned(is) && (changed(was, is) || !r.concerned(was))
		},
	}
}

func (r *Reconciler) concerned(o client.Object) bool {
	pod, is := o.(*corev1.Pod)
	return is && launch.Concerns(pod, r.options.Policy)
}

// changed says whether anything is different that plans look at.
func changed(was, is *corev1.Pod) bool {
	return was.UID != is.UID || was.Annotations[kruise.ContainerLaunchPriorityCompletedKey] !=
		is.Annotations[kruise.ContainerLaunchPriorityCompletedKey] ||
		!slices.EqualFunc(was.Status.ContainerStatuses, is.Status.ContainerStatuses, alike)
}

func alike(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && a.Ready == b.Ready && started(a) == started(b) && waits(a) == waits(b)
}

func started(s corev1.ContainerStatus) bool { return s.Started != nil && *s.Started }

// waits is why a container waits.
func waits(s corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	return s.State.Waiting.Reason
}
