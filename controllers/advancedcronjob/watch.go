package advancedcronjob

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// changes drops the updates of children that no pass looks at, as counters of pods.
func changes(k kind) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, is := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !is {
			return true
		}
		was, now := k.view(before), k.view(after)
		return was.state != now.state || !was.started.Equal(now.started) || !was.scheduled.Equal(now.scheduled) ||
			was.terminating() != now.terminating() || !reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}}
}
