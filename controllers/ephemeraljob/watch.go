package ephemeraljob

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/ephemeral"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const (
	// goesOnField is the name of the index of the jobs that have not ended.
	goesOnField = "kruisekit.dev/goes-on"
	yes         = "true"
)

// goesOn finds the jobs that have not ended.
func goesOn(o client.Object) []string {
	if job := stored.Whole[ephemeralJob](o); job != nil && job.DeletionTimestamp == nil && !ephemeral.Over(job) {
		return []string{yes}
	}
	return nil
}

// withoutCounters leaves out the changes of the status that the reconciler writes, but for the start and the end of a job.
func withoutCounters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, also := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !also || before.GetResourceVersion() == after.GetResourceVersion() {
			return true
		}
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			!apiequality.Semantic.DeepEqual(decisive(before), decisive(after))
	}}
}

func decisive(job *unstructured.Unstructured) []any {
	started, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "startTime")
	completed, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "completionTime")
	return []any{started, completed, job.GetDeletionTimestamp() == nil, job.GetFinalizers()}
}

// podEvents reconcile the jobs to which a change of a pod matters. When the process starts, all jobs are reconciled anyway.
func (r *Reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pod, is := e.Object.(*corev1.Pod); is && !e.IsInInitialList {
				r.wake(ctx, q, nil, pod)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if pod, is := e.Object.(*corev1.Pod); is {
				r.wake(ctx, q, pod, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(*corev1.Pod)
			after, is := e.ObjectNew.(*corev1.Pod)
			switch {
			case !was || !is:
			case before.UID != after.UID:
				r.wake(ctx, q, before, nil)
				r.wake(ctx, q, nil, after)
			case changed(before, after):
				r.wake(ctx, q, before, after)
			}
		},
	}
}

// changed reports whether a pod differs in anything that a job looks at. Most changes of pods do not.
func changed(before, after *corev1.Pod) bool {
	same := apiequality.Semantic.DeepEqual
	return before.Status.Phase != after.Status.Phase || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!maps.Equal(before.Labels, after.Labels) || !same(before.Spec.EphemeralContainers, after.Spec.EphemeralContainers) ||
		!same(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}

// wake requeues the jobs of the namespace that see a pod in another state than before. One of both is nil where the pod was created or deleted.
func (r *Reconciler) wake(ctx context.Context, q queue, before, after *corev1.Pod) {
	pod := after
	if after == nil {
		pod = before
	}
	jobs, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(pod.Namespace), client.MatchingFields{goesOnField: yes})
	if err != nil {
		if ctx.Err() == nil { // no pass is there to return the error
			log.FromContext(ctx).Error(err, "Failed to find the jobs of a pod")
		}
		return
	}
	for _, raw := range jobs {
		job := r.decoded.Decode(raw)
		if job == nil {
			continue
		}
		rule, err := ephemeral.NewRule(job)
		if err == nil && seen(rule, before) != seen(rule, after) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
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
