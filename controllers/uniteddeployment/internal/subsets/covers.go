package subsets

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Covers reports whether a stored object has all fields of a rendered one. What it has besides are defaults, or belong
// to others.
func Covers(stored, rendered *unstructured.Unstructured) bool {
	return len(Lacking(stored, rendered)) == 0
}

// lacks adds the paths at which a value lacks what is wanted.
func lacks(at string, have, want any, paths *[]string) {
	switch w := want.(type) {
	case map[string]any:
		h, is := have.(map[string]any)
		if !is && (have != nil || len(w) > 0) {
			*paths = append(*paths, at)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			lacks(at+"."+key, h[key], w[key], paths)
		}
	case []any:
		h, is := have.([]any)
		if !is && (have != nil || len(w) > 0) {
			*paths = append(*paths, at)
			return
		}
		lacksItems(at, h, w, paths)
	default:
		if !same(have, want) {
			*paths = append(*paths, at)
		}
	}
}

// lacksItems compares lists. Items with names may have others between them.
func lacksItems(at string, have, want []any, paths *[]string) {
	if !named(want) || !named(have) {
		if len(have) != len(want) {
			*paths = append(*paths, at)
			return
		}
		for i := range want {
			lacks(fmt.Sprintf("%s[%d]", at, i), have[i], want[i], paths)
		}
		return
	}
	next := 0
	for _, item := range want {
		for next < len(have) && name(have[next]) != name(item) {
			next++
		}
		if next == len(have) {
			*paths = append(*paths, fmt.Sprintf("%s[%v]", at, name(item)))
			return
		}
		lacks(fmt.Sprintf("%s[%v]", at, name(item)), have[next], item, paths)
		next++
	}
}

func name(item any) any {
	object, _ := item.(map[string]any)
	return object["name"]
}

// named reports whether all items have a name, and no two the same.
func named(items []any) bool {
	seen := map[any]bool{}
	for _, item := range items {
		n, is := name(item).(string)
		if !is || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
}

// same compares scalars. Numbers are compared by value, and the zero value is the same as an absent one.
func same(have, want any) bool {
	if have == nil {
		return want == nil || want == "" || want == false || number64(want) == 0
	}
	if a, b := number64(have), number64(want); a != notANumber && b != notANumber {
		return a == b
	}
	return reflect.DeepEqual(have, want)
}

// notANumber is no count, size or port.
const notANumber = -1 << 62

func number64(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return notANumber
}
