package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/broadcast"
	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const (
	// nodeField is the name of the index of the pods of jobs by their node.
	nodeField = "kruisekit.dev/broadcast-node"
	// goesOnField is the name of the index of the jobs that have not ended.
	goesOnField = "kruisekit.dev/goes-on"
	yes         = "true"
)

// nodeOf is the node of a pod of a job.
func nodeOf(o client.Object) []string {
	pod, isPod := o.(*corev1.Pod)
	if !isPod || ownerOf(pod) == nil {
		return nil
	}
	return []string{eligible.NodeOf(pod)}
}

// ownerOf is the reference of a pod to its job; nil for a pod of none.
func ownerOf(pod *corev1.Pod) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == gvk().Kind {
		return ref
	}
	return nil
}

// goesOn finds the jobs that have not ended.
func goesOn(o client.Object) []string {
	if job := stored.Whole[broadcastJob](o); job != nil && job.DeletionTimestamp == nil && !broadcast.Over(job) {
		return []string{yes}
	}
	return nil
}

// withoutCounters leaves out the changes of counters, which the reconciler writes. The rest of the status decides about a job.
func withoutCounters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, also := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !also || before.GetResourceVersion() == after.GetResourceVersion() {
			return true
		}
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!apiequality.Semantic.DeepEqual(decisive(before), decisive(after))
	}}
}

func decisive(job *unstructured.Unstructured) []any {
	status, _, _ := unstructured.NestedMap(job.Object, "status")
	return []any{status["phase"], status["conditions"], status["startTime"], status["completionTime"]}
}

// podChanges are the changes of pods that a pass looks at.
func podChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		if !ok || !also {
			return true
		}
		return before.UID != after.UID || hasEnded(before) != hasEnded(after) || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			after.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && broadcast.Restarts(before) != broadcast.Restarts(after) ||
			!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

func hasEnded(pod *corev1.Pod) corev1.PodPhase {
	if p := pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
		return p
	}
	return ""
}

// nodeEvents reconcile the jobs that a change of a node is about. When the process starts, all jobs are reconciled anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if node, is := e.Object.(*corev1.Node); is && !e.IsInInitialList {
				r.wake(ctx, q, nil, node)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if node, is := e.Object.(*corev1.Node); is {
				r.wake(ctx, q, node, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(*corev1.Node)
			after, is := e.ObjectNew.(*corev1.Node)
			if was && is && eligible.Changed(before, after) {
				r.wake(ctx, q, before, after)
			}
		},
	}
}

// wake requeues the jobs for which a node begins or ends to fit, and those with a pod there that no longer may stay. One of both states of
// the node is nil where it was created or deleted.
func (r *Reconciler) wake(ctx context.Context, q queue, before, after *corev1.Node) {
	name := after
	if after == nil {
		name = before
	}
	jobs, err := stored.List(ctx, r.api.Cached, gvk(), client.MatchingFields{goesOnField: yes})
	if err != nil {
		logged(ctx, err)
		return
	}
	for _, raw := range jobs {
		job := r.decoded.Decode(raw)
		if job == nil {
			continue
		}
		rule := broadcast.Rule(&job.Spec.Template)
		runs := func(node *corev1.Node) bool { return node != nil && rule.Check(node).Run }
		if runs(before) != runs(after) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
	var pods corev1.PodList
	if err := r.api.Client.List(ctx, &pods, client.MatchingFields{nodeField: name.Name}, client.UnsafeDisableDeepCopy); err != nil {
		logged(ctx, err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		keeps := func(node *corev1.Node) bool { return node != nil && broadcast.Keeps(pod, node) }
		if ref := ownerOf(pod); ref != nil && (before == nil || after == nil || keeps(before) != keeps(after)) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}})
		}
	}
}

// logged logs an error where no pass is there to return it.
func logged(ctx context.Context, err error) {
	if ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to find the jobs of a node")
	}
}
