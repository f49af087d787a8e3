package podtemplate

import (
	"maps"
	"slices"
	"strconv"

	"github.com/kruisekit/kruisekit/write"
)

// Fill adds to have what only want has, and returns the same as a JSON patch; at is the pointer to have in the object
// that is patched. What the user wrote stays as it was written, be it in another notation than in want, with the
// exception of empty values: the API server takes those as left out.
//
// Lists are filled element by element, and only when they have the same length.
func Fill(at string, have, want map[string]any) []write.Op {
	f := filler{}
	f.object(at, have, want, nil)
	return f.done
}

// Refill is Fill for a template that replaces a stored one. A value that the defaulted stored template lacks stays
// missing: a default that the API server has learned since would be a change that no user made, and that no running pod
// can follow.
func Refill(at string, have, want, stored map[string]any) []write.Op {
	if !wasDefaulted(stored) {
		stored = nil
	}
	f := filler{}
	f.object(at, have, want, stored)
	return f.done
}

// RefillParts is Refill for parts of a template that stand in an object of another kind. The stored parts must have
// been defaulted.
func RefillParts(at string, have, want, stored map[string]any) []write.Op {
	f := filler{}
	f.object(at, have, want, stored)
	return f.done
}

// wasDefaulted reports whether a template has the defaults that every template has.
func wasDefaulted(template map[string]any) bool {
	spec, _ := template["spec"].(map[string]any)
	for _, key := range []string{
		"dnsPolicy", "restartPolicy", "schedulerName", "securityContext", "terminationGracePeriodSeconds",
	} {
		if spec[key] == nil {
			return false
		}
	}
	return true
}

type filler struct {
	done []write.Op
}

// object fills an object; stored is nil where nothing like it is stored.
func (f *filler) object(at string, have, want, stored map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		w, path := want[key], at+"/"+write.Escape(key)
		h, ok := have[key]
		switch {
		case w == nil: // as good as none
		case !ok || h == nil:
			if stored != nil && stored[key] == nil {
				continue
			}
			have[key] = w
			f.done = append(f.done, write.Add(path, w))
		case replaces(h, w):
			have[key] = w
			f.done = append(f.done, write.Replace(path, w))
		default:
			f.value(path, h, w, stored[key])
		}
	}
}

func (f *filler) value(at string, have, want, stored any) {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			s, _ := stored.(map[string]any)
			f.object(at, h, w, s)
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return
		}
		for i := range w {
			f.value(at+"/"+strconv.Itoa(i), h[i], w[i], counterpart(stored, h[i], i))
		}
	}
}

// counterpart returns the element of a stored list that an element replaces: that of the same name, or else of the same
// index.
func counterpart(stored, element any, i int) any {
	list, _ := stored.([]any)
	object, _ := element.(map[string]any)
	name, named := object["name"].(string)
	if !named {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	for _, s := range objects(stored) {
		if s["name"] == name {
			return s
		}
	}
	return nil
}

// replaces distinguishes a default of an empty value from the same value in another notation, as 0 and "0" of a
// quantity are.
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
