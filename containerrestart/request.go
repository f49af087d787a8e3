package containerrestart

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

type (
	request = appsv1beta1.ContainerRecreateRequest
	state   = appsv1beta1.ContainerRecreateRequestContainerRecreateState
)

// ended says whether nothing more happens for a request.
func ended(r *request) bool {
	return r.Status.CompletionTime != nil || r.Status.Phase == appsv1beta1.ContainerRecreateRequestCompleted
}

// strategyOf is never nil.
func strategyOf(r *request) *appsv1beta1.ContainerRecreateRequestStrategy {
	if r.Spec.Strategy == nil {
		return &appsv1beta1.ContainerRecreateRequestStrategy{}
	}
	return r.Spec.Strategy
}

// conditionOf is a condition of a request that is True, in it; nil where there is none.
func conditionOf(r *request, conditionType string) *metav1.Condition {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == conditionType && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// withCondition is a list of conditions with one replaced, or added.
func withCondition(all []metav1.Condition, c metav1.Condition) []metav1.Condition {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Type == c.Type {
			all[i] = c
			return all
		}
	}
	return append(all, c)
}

// Queue returns the requests of one pod that have not ended, in the order in which they run. The first request runs,
// and the others wait. Queue compares the UID of the pod, so that a request for an earlier pod of the same name delays
// no other.
func Queue(pod types.UID, requests []*appsv1beta1.ContainerRecreateRequest) []*appsv1beta1.ContainerRecreateRequest {
	var queue []*request
	for _, r := range requests {
		if waits(r, pod) {
			queue = append(queue, r)
		}
	}
	slices.SortStableFunc(queue, order)
	return queue
}

// order is that in which requests run.
func order(a, b *request) int {
	return cmp.Or(
		cmp.Compare(weight(a), weight(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// waits reports whether a request is in the queue of a pod.
func waits(r *request, pod types.UID) bool {
	return podOf(r) == pod && r.DeletionTimestamp == nil && !ended(r)
}

// weight is small for a request that has come far.
func weight(r *request) int {
	switch r.Status.Phase {
	case appsv1beta1.ContainerRecreateRequestRecreating:
		return 0
	case appsv1beta1.ContainerRecreateRequestPending:
		return 1
	default:
		return 2
	}
}

func podOf(r *request) types.UID {
	return types.UID(r.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey])
}

// MaxQueued is how many requests of one pod may be before a request that has not begun. The manager completes a request
// behind more: each decision about a pod looks at all of its requests, and one tenant must not keep a manager and a
// node busy with them.
const MaxQueued = 99

// outnumbered reports whether more than MaxQueued requests of the pod are before a request that has not begun.
func outnumbered(r *request, others []*request) bool {
	if len(others) <= MaxQueued || r.Status.Phase == appsv1beta1.ContainerRecreateRequestRecreating {
		return false
	}
	earlier := 0
	for _, o := range others {
		if (o.Name != r.Name || o.Namespace != r.Namespace) && waits(o, podOf(r)) && order(o, r) < 0 {
			earlier++
		}
	}
	return earlier > MaxQueued
}

// before returns the request that another one has to wait for; nil for none. It looks at each of the others once.
func before(r *request, others []*request) *request {
	var first *request
	for _, o := range others {
		// The one at hand stands for itself: in the list it may be older, or missing.
		if (o.Name != r.Name || o.Namespace != r.Namespace) && waits(o, podOf(r)) && (first == nil || order(o, first) < 0) {
			first = o
		}
	}
	if first == nil || waits(r, podOf(r)) && order(r, first) < 0 {
		return nil
	}
	return first
}
