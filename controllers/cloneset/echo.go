package cloneset

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// withoutEchoes leaves out changes of a set that only tell its last failure in other words. They are the reconciler's own,
// and to look at them at once would do away with the pause before the next attempt: some refusals, as those with a request's
// number in them, read differently each time.
func withoutEchoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1beta1.CloneSet)
		after, also := e.ObjectNew.(*v1beta1.CloneSet)
		return !ok || !also || !isEcho(before, after)
	}}
}

func isEcho(before, after *v1beta1.CloneSet) bool {
	reworded := false
	for _, t := range []v1beta1.CloneSetConditionType{v1beta1.CloneSetConditionFailedScale, v1beta1.CloneSetConditionFailedUpdate} {
		b, a := conditionOf(&before.Status, t), conditionOf(&after.Status, t)
		if (b == nil) != (a == nil) {
			return false
		}
		reworded = reworded || b != nil && b.Message != a.Message
	}
	return reworded && apiequality.Semantic.DeepEqual(withoutFailures(before), withoutFailures(after))
}

// withoutFailures is a set without what a report of a failure changes.
func withoutFailures(set *v1beta1.CloneSet) *v1beta1.CloneSet {
	rest := *set
	rest.ResourceVersion, rest.ManagedFields, rest.Status.Conditions = "", nil, nil
	for _, c := range set.Status.Conditions {
		if c.Type != v1beta1.CloneSetConditionFailedScale && c.Type != v1beta1.CloneSetConditionFailedUpdate {
			rest.Status.Conditions = append(rest.Status.Conditions, c)
		}
	}
	return &rest
}
