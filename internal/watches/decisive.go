package watches

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// Decisive selects the events of untyped objects, but for the updates that no pass looks at, such as those of the
// counters that the reconciler writes. A resync passes, as do another spec, another UID, the deletion, and what matters
// reports about the object before and after.
func Decisive(matters func(before, after *unstructured.Unstructured) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*unstructured.Unstructured)
		after, is := e.ObjectNew.(*unstructured.Unstructured)
		if !was || !is || before.GetResourceVersion() == after.GetResourceVersion() {
			return true
		}
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || matters(before, after)
	}}
}

// StatusChanged reports whether one of these fields of the status differs.
func StatusChanged(before, after *unstructured.Unstructured, fields ...string) bool {
	for _, field := range fields {
		was, _, _ := stored.Field(before, "status", field)
		is, _, _ := stored.Field(after, "status", field)
		if !apiequality.Semantic.DeepEqual(was, is) {
			return true
		}
	}
	return false
}
