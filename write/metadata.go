package write

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUID returns the test that the name still belongs to this object. It returns no test for an object without a UID,
// which no API server returned.
func TestUID(o metav1.Object) []Op {
	if o.GetUID() == "" {
		return nil
	}
	return []Op{Test(Pointer("metadata", "uid"), o.GetUID())}
}

// TestLabel returns the test that a label has the value, or is absent, as in this object.
func TestLabel(o metav1.Object, key string) Op { return testKey("labels", o.GetLabels(), key) }

// TestAnnotation returns the test that an annotation has the value, or is absent, as in this object.
func TestAnnotation(o metav1.Object, key string) Op {
	return testKey("annotations", o.GetAnnotations(), key)
}

// SetLabels returns the operations that set labels of this object, and remove those with nil. Labels that have their
// value already cost no operation.
func SetLabels(o metav1.Object, changed map[string]*string) []Op {
	return setKeys("labels", o.GetLabels(), changed)
}

// SetAnnotations returns the operations that set annotations, as SetLabels does for labels.
func SetAnnotations(o metav1.Object, changed map[string]*string) []Op {
	return setKeys("annotations", o.GetAnnotations(), changed)
}

// SetFinalizers returns the operations that replace the finalizers of this object. They test all finalizers that it
// has, so that no finalizer of another writer is lost.
func SetFinalizers(o metav1.Object, finalizers []string) []Op {
	have, path := o.GetFinalizers(), Pointer("metadata", "finalizers")
	if slices.Equal(have, finalizers) {
		return nil
	}
	before := Test(path, have)
	if len(have) == 0 {
		before = Test(path, nil)
	}
	return []Op{before, Add(path, finalizers)}
}

func testKey(field string, have map[string]string, key string) Op {
	value, ok := have[key]
	switch {
	case ok:
		return Test(Pointer("metadata", field, key), value)
	case len(have) > 0:
		return Test(Pointer("metadata", field, key), nil)
	}
	// Nor may another writer have added the first one, which a later write of all of them would drop.
	return Test(Pointer("metadata", field), nil)
}

func setKeys(field string, have map[string]string, changed map[string]*string) []Op {
	if len(have) == 0 {
		all := map[string]string{}
		for key, value := range changed {
			if value != nil {
				all[key] = *value
			}
		}
		if len(all) == 0 {
			return nil
		}
		path := Pointer("metadata", field)
		return []Op{Test(path, nil), Add(path, all)}
	}
	var ops []Op
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		old, ok := have[key]
		switch value := changed[key]; {
		case value == nil && ok:
			ops = append(ops, Remove(Pointer("metadata", field, key)))
		case value != nil && (!ok || old != *value):
			ops = append(ops, Add(Pointer("metadata", field, key), *value))
		}
	}
	return ops
}
