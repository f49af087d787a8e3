package ephemeraljob

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/watches"
)

// withoutCounters leaves out the changes of the status that the reconciler writes, but for the start and the end of a
// job.
func withoutCounters() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		return watches.StatusChanged(before, after, "startTime", "completionTime") ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	})
}

// podEvents reconcile the jobs to which a change of a pod matters. When the process starts, all jobs are reconciled
// anyway.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
		if before != nil && after != nil && before.UID != after.UID {
			r.wake(ctx, q, before, nil)
			before = nil
		}
		r.wake(ctx, q, before, after)
	})
}

// wake requeues the jobs of the namespace that a change of a pod concerns. before is nil for a new pod, after for a
// deleted one.
func (r *Reconciler) wake(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
	pod := after
	if after == nil {
		pod = before
	}
	jobs, err := unfinished().List(ctx, r.api.Cached, pod.Namespace)
	watches.Log(ctx, err, "Failed to find the jobs of a pod")
	affected := r.rules.Affected(pod.Namespace, jobs, func(r *rule) bool { return seen(r, before) != seen(r, after) })
	for _, request := range affected {
		q.Add(request)
	}
}

// seen is the state of a pod for a job, where a pod that has ended or is gone is as good as one that is not selected.
func seen(r *rule, pod *corev1.Pod) podState {
	if pod == nil {
		return podUnselected
	}
	if state := r.state(pod); state != podInactive {
		return state
	}
	return podUnselected
}

func unfinished() *watches.Unfinished[ephemeralJob] {
	return &watches.Unfinished[ephemeralJob]{Kind: gvk(), Over: over}
}
