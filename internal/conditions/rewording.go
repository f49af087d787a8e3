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

// IgnoreRewording leaves out changes of an untyped object in which only the texts of these conditions differ. Such a
// change is the reconciler's own report of its last failure. A pass at once would end the pause before the next
// attempt: some refusals, as those with the number of a request in them, read differently each time.
func IgnoreRewording(failures ...string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := content(e.ObjectOld), content(e.ObjectNew)
		if before == nil || after == nil {
			return true
		}
		was, is := messages(before, failures), messages(after, failures)
		reworded := !maps.Equal(was, is) && slices.Equal(slices.Sorted(maps.Keys(was)), slices.Sorted(maps.Keys(is)))
		return !reworded || !reflect.DeepEqual(without(before, failures), without(after, failures))
	}}
}

// content returns the fields of an untyped object, of which the spec may be packed; nil for another object.
func content(o client.Object) map[string]any {
	raw, is := o.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	content := maps.Clone(raw.Object)
	if status, has, err := stored.Field(raw, "status"); has && err == nil {
		content["status"] = status
	}
	return content
}

// messages returns the texts of conditions by their type.
func messages(object map[string]any, types []string) map[string]string {
	found := map[string]string{}
	all, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	list, _ := all.([]any)
	for _, c := range list {
		if fields, is := c.(map[string]any); is && isOneOf(fields, types) {
			found[fields["type"].(string)], _ = fields["message"].(string)
		}
	}
	return found
}

// without returns an object without these conditions, and without the metadata that each write changes.
func without(object map[string]any, types []string) map[string]any {
	object = maps.Clone(object)
	if metadata, is := object["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	status, is := object["status"].(map[string]any)
	if list, are := status["conditions"].([]any); is && are {
		status = maps.Clone(status)
		status["conditions"] = slices.DeleteFunc(slices.Clone(list), func(c any) bool {
			fields, is := c.(map[string]any)
			return is && isOneOf(fields, types)
		})
		object["status"] = status
	}
	return object
}

func isOneOf(condition map[string]any, types []string) bool {
	t, is := condition["type"].(string)
	return is && slices.Contains(types, t)
}
