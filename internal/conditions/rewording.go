package conditions

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// IgnoreRewording leaves out changes of an untyped object in which at most the texts of these conditions differ. Such a
// change is the reconciler's own report of its last failure. A pass at once would end the pause before the next
// attempt: some refusals, as those with the number of a request in them, read differently each time.
func IgnoreRewording(failures ...string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := content(e.ObjectOld, failures), content(e.ObjectNew, failures)
		return before == nil || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
			!reflect.DeepEqual(before, after)
	}}
}

// content returns the fields of an untyped object without the texts of these conditions, and without the metadata that
// each write changes; nil for another object.
func content(o client.Object, types []string) map[string]any {
	raw, is := o.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	content := maps.Clone(raw.Object)
	if metadata, is := content["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		content["metadata"] = metadata
	}
	status, has, err := stored.Value[map[string]any](raw, "status")
	if !has || err != nil {
		return content
	}
	status = maps.Clone(status)
	list, _ := status["conditions"].([]any)
	list = slices.Clone(list)
	for i, c := range list {
		fields, is := c.(map[string]any)
		if t, _ := fields["type"].(string); is && slices.Contains(types, t) {
			fields = maps.Clone(fields)
			delete(fields, "message")
			list[i] = fields
		}
	}
	status["conditions"], content["status"] = list, status
	return content
}
