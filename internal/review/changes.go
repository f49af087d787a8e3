package review

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/write"
)

// Changes gives the patch that makes of an object, as it was sent, what was made of before: after. Both are pointers to
// typed objects, before is what content means. What only before has is not removed. Nothing is changed here.
func Changes(content map[string]any, before, after any) ([]write.Op, error) {
	if reflect.DeepEqual(before, after) {
		return nil, nil
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	var d differ
	d.object("", content, was, is)
	return d.patch, nil
}

type differ struct{ patch []write.Op }

// object compares what was and what is; sent has the same, and perhaps more, in the user's words.
func (d *differ) object(at string, sent, was, is map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(is)) {
		below := at + "/" + write.Escape(key)
		if !d.inside(below, sent[key], was[key], is[key]) {
			// To add a key that is there already replaces its value.
			d.patch = append(d.patch, write.Add(below, is[key]))
		}
	}
}

// inside compares two values part by part; false if they have to be exchanged as a whole.
func (d *differ) inside(at string, sent, was, is any) bool {
	if reflect.DeepEqual(was, is) {
		return true
	}
	switch now := is.(type) {
	case map[string]any:
		below, ok := sent.(map[string]any)
		if ok {
			before, _ := was.(map[string]any)
			d.object(at, below, before, now)
		}
		return ok
	case []any:
		below, ok := sent.([]any)
		before, same := was.([]any)
		if ok && same && len(below) == len(now) && len(before) == len(now) {
			d.list(at, below, before, now)
			return true
		}
	}
	return false
}

// list compares lists of the same length.
func (d *differ) list(at string, sent, was, is []any) {
	for i := range is {
		below := at + "/" + strconv.Itoa(i)
		if !d.inside(below, sent[i], was[i], is[i]) {
			d.patch = append(d.patch, write.Replace(below, is[i]))
		}
	}
}
