package ephemeraljob

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
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
		switch {
		case before == nil, after == nil:
			r.wake(ctx, q, before, after)
		case before.UID != after.UID:
			r.wake(ctx, q, before, nil)
			r.wake(ctx, q, nil, after)
		case changed(before, after):
			r.wake(ctx, q, before, after)
		}
	})
}

// changed reports whether a pod differs in anything that a job looks at. Most changes of pods do not.
func changed(before, after *corev1.Pod) bool {
	same := apiequality.Semantic.DeepEqual
	return before.Status.Phase != after.Status.Phase ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !maps.Equal(before.Labels, after.Labels) ||
		!same(before.Spec.EphemeralContainers, after.Spec.EphemeralContainers) ||
		!same(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}

// wake requeues the jobs of the namespace that see a pod in another state than before. One of both is nil where the pod
// was created or deleted.
func (r *Reconciler) wake(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
	pod := after
	if after == nil {
		pod = before
	}
	jobs, err := r.unfinished.Affected(ctx, r.api.Cached, pod.Namespace, func(rule *ephemeral.Rule) bool {
		return seen(rule, before) != seen(rule, after)
	})
	watches.Log(ctx, err, "Failed to find the jobs of a pod")
	for _, job := range jobs {
		q.Add(job)
	}
}

// seen is the state of a pod for a job, where a pod that has ended or is gone is as good as one that is not selected.
func seen(rule *ephemeral.Rule, pod *corev1.Pod) ephemeral.State {
	if pod == nil {
		return ephemeral.Unselected
	}
	if state := rule.State(pod); state != ephemeral.Inactive {
		return state
	}
	return ephemeral.Unselected
}
