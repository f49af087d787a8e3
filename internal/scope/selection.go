package scope

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Requirements are what can be read of a Selection. The webhook goes by them where the object itself cannot be read.
type Requirements struct {
	// Pod and Namespace are the requirements that can be read; nil for none.
	Pod, Namespace labels.Requirements
	// Whole reports that every requirement can be read.
	Whole bool
	// Never reports that the object selects no pod.
	Never bool
}

// Bounded reports that what can be read keeps the object from selecting every pod.
func (r Requirements) Bounded() bool { return len(r.Pod) > 0 || len(r.Namespace) > 0 }

// Read returns what can be read of the selectors.
func (s *Selection) Read() Requirements {
	r := Requirements{Whole: true, Never: true}
	if p := s.Pod; p != nil && (len(p.MatchLabels) > 0 || len(p.MatchExpressions) > 0) {
		r.Pod, r.Whole = requirements(p)
		r.Never = false
	}
	if s.Namespace != nil {
		var whole bool
		r.Namespace, whole = requirements(s.Namespace)
		r.Whole = r.Whole && whole
	}
	return r
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

// expressions returns requirements as a selector has them, in a stable order.
func expressions(all labels.Requirements) []metav1.LabelSelectorRequirement {
	stable, _ := labels.NewSelector().Add(all...).Requirements() // sorted by key
	out := make([]metav1.LabelSelectorRequirement, len(stable))
	for i := range stable {
		r := &stable[i]
		out[i] = metav1.LabelSelectorRequirement{Key: r.Key(), Values: sorted(r.Values().UnsortedList())}
		switch r.Operator() { //nolint:exhaustive // a LabelSelector has no others
		case selection.In, selection.Equals, selection.DoubleEquals:
			out[i].Operator = metav1.LabelSelectorOpIn
		case selection.NotIn, selection.NotEquals:
			out[i].Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			out[i].Operator = metav1.LabelSelectorOpExists
		default:
			out[i].Operator = metav1.LabelSelectorOpDoesNotExist
		}
		if len(out[i].Values) == 0 {
			out[i].Values = nil
		}
	}
	return out
}
