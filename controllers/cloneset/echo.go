package cloneset

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// withoutEchoes leaves out changes of a set that only tell its last failure in other words. They are the reconciler's own,
// and to look at them at once would do away with the pause before the next attempt: some refusals, as those with a request's
// number in them, read differently each time.
func withoutEchoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := setOf(e.ObjectOld), setOf(e.ObjectNew)
		return before == nil || after == nil || !isEcho(before, after)
	}}
}

// setOf is the set of an event; nil for none.
func setOf(o client.Object) *v1beta1.CloneSet {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	set, _, err := stored.Decode[v1beta1.CloneSet](raw)
	if err != nil {
		return nil
	}
	return set
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
