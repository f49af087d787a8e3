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

// Changes returns the patch that makes, of an object as it was sent, what before has become: after. Both are pointers
// to typed objects, and before is the content decoded. A field that only before has is removed, together with what is
// unknown below the field. A field that neither of them has stays. Changes modifies none of them.
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

// object compares two states; sent has the same as the first, and maybe more, in the user's notation.
func (d *differ) object(at string, sent, was, is map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(was)) {
		_, stays := is[key]
		// The API server rejects a patch that removes what was not sent.
		if _, ok := sent[key]; ok && !stays {
			d.patch = append(d.patch, write.Remove(at+"/"+write.Escape(key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		below := at + "/" + write.Escape(key)
		if !d.inside(below, sent[key], was[key], is[key]) {
			// Adding an existing key replaces its value.
			d.patch = append(d.patch, write.Add(below, is[key]))
		}
	}
}

// inside compares two values part by part; false if they must be replaced as a whole.
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
