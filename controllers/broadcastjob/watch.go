package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// nodeField is the name of the index of the pods of jobs by their node.
const nodeField = "kruisekit.dev/broadcast-node"

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
				broadcast.Restarts(before) != broadcast.Restarts(after) ||
			!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

func hasEnded(pod *corev1.Pod) corev1.PodPhase {
	if p := pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
		return p
	}
	return ""
}

// nodeEvents reconcile the jobs that a change of a node is about. When the process starts, all jobs are reconciled
// anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Node) {
		if before == nil || after == nil || eligible.Changed(before, after) {
			watches.Log(ctx, r.wake(ctx, q, before, after), "Failed to find the jobs of a node")
		}
	})
}

// wake requeues the jobs for which a node begins or ends to fit, and those with a pod there that no longer may stay.
// One of both states of the node is nil where it was created or deleted.
func (r *Reconciler) wake(ctx context.Context, q watches.Queue, before, after *corev1.Node) error {
	name := after
	if after == nil {
		name = before
	}
	jobs, err := r.unfinished.Affected(ctx, r.api.Cached, metav1.NamespaceAll, func(rule *eligible.Rule) bool {
		runs := func(node *corev1.Node) bool { return node != nil && rule.Check(node).Run }
		return runs(before) != runs(after)
	})
	if err != nil {
		return err
	}
	for _, job := range jobs {
		q.Add(job)
	}
	var pods corev1.PodList
	if err := r.api.Client.List(ctx, &pods, client.MatchingFields{nodeField: name.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if ref := ownerOf(pod); ref != nil && (before == nil || after == nil || keptDiffers(pod, before, after)) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}})
		}
	}
	return nil
}

// keptDiffers reports whether a pod may stay on one of two states of its node alone.
func keptDiffers(pod *corev1.Pod, before, after *corev1.Node) bool {
	rule := broadcast.NewPodRule(pod)
	return rule.Keeps(before) != rule.Keeps(after)
}

// ruleOf returns the nodes that get a pod of a job.
func ruleOf(job *broadcastJob) (*eligible.Rule, error) {
	return broadcast.Rule(&job.Spec.Template), nil
}
