package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// withoutCounters leaves out the changes of counters, which the reconciler writes. The rest of the status decides about
// a job.
func withoutCounters() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		return watches.StatusChanged(before, after, "phase", "conditions", "startTime", "completionTime")
	})
}

// podChanges are the changes of pods that a pass looks at.
func podChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		if !ok || !also {
			return true
		}
		return before.UID != after.UID || hasEnded(before) != hasEnded(after) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			after.Spec.RestartPolicy == corev1.RestartPolicyOnFailure &&
				restarts(before) != restarts(after) ||
			!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

func hasEnded(pod *corev1.Pod) corev1.PodPhase {
	if p := pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
		return p
	}
	return ""
}

// nodeEvents reconcile the jobs that have not ended when a node comes, leaves, or changes in what decides where pods
// fit. When the process starts, all jobs are reconciled anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Node) {
		if before != nil && after != nil && !eligible.Changed(before, after) {
			return
		}
		jobs, err := unfinished().List(ctx, r.api.Cached, metav1.NamespaceAll)
		watches.Log(ctx, err, "Failed to requeue the jobs that have not ended")
		for _, job := range jobs {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	})
}

func unfinished() *watches.Unfinished[broadcastJob] {
	return &watches.Unfinished[broadcastJob]{Kind: gvk(), Over: over}
}
