package podprobemarker

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// gather is how long other pods are waited for: a rollout costs a marker one pass in a second, and not one for each
// pod.
const gather = time.Second

// podEvents requeue the markers that select a pod, or selected it.
func (r *Reconciler) podEvents() handler.EventHandler {
	var also func(was, is *corev1.Pod) bool
	if r.options.Serverless {
		also = conditionsChanged
	}
	return r.markers.PodEvents(also, func(q watches.Queue, _ *corev1.Pod, selecting []*v1alpha1.PodProbeMarker) {
		for _, m := range selecting {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}, gather)
		}
	})
}

// conditionsChanged reports whether a condition of a probed pod that a provider may have written is new, or has another
// status.
func conditionsChanged(was, is *corev1.Pod) bool {
	return podprobe.IsProbed(is) && slices.ContainsFunc(is.Status.Conditions, func(c corev1.PodCondition) bool {
		return !podprobe.IsReserved(string(c.Type)) &&
			!slices.ContainsFunc(was.Status.Conditions, func(old corev1.PodCondition) bool {
				return old.Type == c.Type && old.Status == c.Status
			})
	})
}
