package pub

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requirement is what a selector requires of one label.
type requirement struct {
	operator metav1.LabelSelectorOperator
	values   []string
}

// Overlap reports whether two selectors are taken to select the same pod: they have the same keys, and the requirements
// of each key can be met together. It is the rule for budgets of one namespace, which is looser than whether a pod can
// be selected by both.
func Overlap(a, b *metav1.LabelSelector) bool {
	x, y := requirements(a), requirements(b)
	if len(x) == 0 || len(x) != len(y) {
		return false
	}
	for key, one := range x {
		other, ok := y[key]
		if !ok || !one.meets(other) && !other.meets(one) {
			return false
		}
	}
	return true
}

// requirements are those of each key; a later one of the same key replaces the earlier.
func requirements(s *metav1.LabelSelector) map[string]requirement {
	all := map[string]requirement{}
	if s == nil {
		return all
	}
	for key, value := range s.MatchLabels {
		all[key] = requirement{metav1.LabelSelectorOpIn, []string{value}}
	}
	for _, e := range s.MatchExpressions {
		all[e.Key] = requirement{e.Operator, e.Values}
	}
	return all
}

// meets reports whether a label can satisfy both requirements. It has one half of the pairs; the other is its mirror.
func (r requirement) meets(other requirement) bool {
	const (
		in, notIn, exists, absent = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
			metav1.LabelSelectorOpDoesNotExist
	)
	switch [2]metav1.LabelSelectorOperator{r.operator, other.operator} {
	case [2]metav1.LabelSelectorOperator{in, in}:
		return slices.ContainsFunc(r.values, func(v string) bool { return slices.Contains(other.values, v) })
	case [2]metav1.LabelSelectorOperator{in, notIn}:
		return slices.ContainsFunc(r.values, func(v string) bool { return !slices.Contains(other.values, v) })
	case [2]metav1.LabelSelectorOperator{in, exists}, [2]metav1.LabelSelectorOperator{exists, notIn},
		[2]metav1.LabelSelectorOperator{exists, exists}, [2]metav1.LabelSelectorOperator{notIn, notIn},
		[2]metav1.LabelSelectorOperator{notIn, absent}, [2]metav1.LabelSelectorOperator{absent, absent}:
		return true
	}
	return false
}
