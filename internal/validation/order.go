package validation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Priority validates the order of updates. All faults are reported as missing values, as by the reference.
func Priority(s *kruise.UpdatePriorityStrategy, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var faults field.ErrorList
	if len(s.WeightPriority) > 0 && len(s.OrderPriority) > 0 {
		faults = append(faults, field.Required(at, "one of weightPriority and orderPriority, not both"))
	}
	for i := range s.WeightPriority {
		term, here := &s.WeightPriority[i], at.Child("weightPriority").Index(i)
		if term.Weight < 0 || term.Weight > 100 {
			faults = append(faults,
				field.Required(here.Child("weight"), fmt.Sprintf("a number from 0 to 100, not %d", term.Weight)))
		}
		if len(term.MatchSelector.MatchLabels)+len(term.MatchSelector.MatchExpressions) == 0 {
			faults = append(faults,
				field.Required(here.Child("matchSelector"), "an empty selector gives all pods the same weight"))
		} else if _, err := metav1.LabelSelectorAsSelector(&term.MatchSelector); err != nil {
			faults = append(faults, field.Required(here.Child("matchSelector"), "a valid selector: "+err.Error()))
		}
	}
	for i, term := range s.OrderPriority {
		if term.OrderedKey == "" {
			faults = append(faults, field.Required(at.Child("orderPriority").Index(i).Child("orderedKey"), "the key of a label"))
		}
	}
	return faults
}

// Scatter validates how updates are scattered, and reports faults as Priority does.
func Scatter(s kruise.UpdateScatterStrategy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := map[kruise.UpdateScatterTerm]bool{}
	for i, term := range s {
		if term.Key == "" {
			faults = append(faults, field.Required(at.Index(i).Child("key"), "the key of a label"))
		}
		if seen[term] {
			faults = append(faults,
				field.Required(at.Index(i), fmt.Sprintf("another label than %s=%s, which is named before", term.Key, term.Value)))
		}
		seen[term] = true
	}
	return faults
}
