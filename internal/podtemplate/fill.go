package podtemplate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Operation is one of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Fill adds to have what only want has, and returns the same as a JSON patch; at is the pointer to have in the object that
// is patched. What the user wrote stays as it was written, be it in another notation than in want, with the exception of
// empty values: the API server takes those as left out.
//
// Lists are filled element by element, and only when they have the same length.
func Fill(at string, have, want map[string]any) []Operation {
	return fillObject(at, have, want, nil)
}

func fillObject(at string, have, want map[string]any, done []Operation) []Operation {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		w, path := want[key], at+"/"+escape(key)
		h, ok := have[key]
		switch {
		case w == nil: // as good as none
		case !ok || h == nil:
			have[key] = w
			done = append(done, Operation{Op: "add", Path: path, Value: w})
		case replaces(h, w):
			have[key] = w
			done = append(done, Operation{Op: "replace", Path: path, Value: w})
		default:
			done = fillValue(path, h, w, done)
		}
	}
	return done
}

func fillValue(at string, have, want any, done []Operation) []Operation {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			return fillObject(at, h, w, done)
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return done
		}
		for i := range w {
			done = fillValue(at+"/"+strconv.Itoa(i), h[i], w[i], done)
		}
	}
	return done
}

// replaces tells a default for an empty value from the same value in another notation, as 0 and "0" of a quantity are.
func replaces(have, want any) bool {
	switch have.(type) {
	case string:
		_, ok := want.(string)
		return ok && isZero(have) && !isZero(want)
	case int64:
		_, ok := want.(int64)
		return ok && isZero(have) && !isZero(want)
	}
	return false
}

func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	}
	return false
}

// escape makes a key a part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
