package scope

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// term is the requirements on one label.
type term struct {
	// in are the values that are accepted, sorted; nil for any.
	in []string
	// out are the values that are rejected, sorted. Only without in.
	out []string
	// exists and absent require the label, or its absence. Not both, and only without in.
	exists, absent bool
}

// requirements returns those of a selector that can be read. Whole is false if some cannot.
func requirements(s *metav1.LabelSelector) (all labels.Requirements, whole bool) {
	whole = true
	for key, value := range s.MatchLabels {
		r, err := labels.NewRequirement(key, selection.In, []string{value})
		if err != nil {
			whole = false
			continue
		}
		all = append(all, *r)
	}
	for i := range s.MatchExpressions {
		one := &metav1.LabelSelector{MatchExpressions: s.MatchExpressions[i : i+1]}
		selector, err := metav1.LabelSelectorAsSelector(one)
		if err != nil {
			whole = false
			continue
		}
		read, _ := selector.Requirements()
		all = append(all, read...)
	}
	return all, whole
}

// terms returns the requirements by label; false if no labels meet all of them.
func terms(all labels.Requirements) (map[string]term, bool) {
	by := map[string]term{}
	for i := range all {
		r := &all[i]
		t := by[r.Key()]
		//nolint:exhaustive // a LabelSelector has no others
		switch values := sorted(r.Values().UnsortedList()); r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if t.in == nil {
				t.in = values
			} else {
				t.in = slices.DeleteFunc(slices.Clone(t.in), func(v string) bool { return !slices.Contains(values, v) })
			}
			if len(t.in) == 0 {
				return nil, false
			}
		case selection.NotIn, selection.NotEquals:
			t.out = sorted(append(slices.Clone(t.out), values...))
		case selection.Exists:
			t.exists = true
		case selection.DoesNotExist:
			t.absent = true
		default:
		}
		by[r.Key()] = t
	}
	for key, t := range by {
		simple, possible := t.simplify()
		if !possible {
			return nil, false
		}
		by[key] = simple
	}
	return by, true
}

// simplify removes what follows from the rest; false if no value is accepted.
func (t term) simplify() (term, bool) {
	switch {
	case t.absent && (t.exists || t.in != nil):
		return term{}, false
	case t.absent:
		return term{absent: true}, true
	case t.in != nil:
		in := slices.DeleteFunc(slices.Clone(t.in), func(v string) bool { return slices.Contains(t.out, v) })
		return term{in: in}, len(in) > 0
	}
	return term{out: t.out, exists: t.exists}, true
}

// key identifies the term.
func (t term) key() string {
	return strings.Join(t.in, ",") + "|" + strings.Join(t.out, ",") + flag(t.exists, "|exists") + flag(t.absent, "|absent")
}

// needs reports whether only an object with the label meets the term.
func (t term) needs() bool { return t.in != nil || t.exists }

func flag(on bool, word string) string {
	if on {
		return word
	}
	return ""
}

func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
