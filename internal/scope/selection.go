package scope

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requirements are what can be read of a Selection. The webhook goes by them where the object itself cannot be read.
type Requirements struct {
	// Pod and Namespace are the requirements that can be read, in a stable order; nil for none.
	Pod, Namespace []metav1.LabelSelectorRequirement
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
func requirements(s *metav1.LabelSelector) (all []metav1.LabelSelectorRequirement, whole bool) {
	each := slices.Clone(s.MatchExpressions)
	for key, value := range s.MatchLabels {
		r := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}
		each = append(each, r)
	}
	for _, r := range each {
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			continue
		}
		r.Values = sorted(slices.Clone(r.Values))
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return all, len(all) == len(each)
}
