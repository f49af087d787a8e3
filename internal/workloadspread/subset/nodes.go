package subset

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

func checkSubsetNodes(s *appsv1beta1.WorkloadSpreadSubset, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if s.RequiredNodeSelector != nil {
		selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*s.RequiredNodeSelector}}
		if _, err := nodeaffinity.NewNodeSelector(selector); err != nil {
			faults = append(faults, field.Invalid(at.Child("requiredNodeSelector"), s.RequiredNodeSelector,
				"must be a valid node selector: "+err.Error()))
		}
		faults = append(faults, checkNodeFields(s.RequiredNodeSelector, at.Child("requiredNodeSelector", "matchFields"))...)
	}
	for i := range s.PreferredNodeSelector {
		term, at := &s.PreferredNodeSelector[i], at.Child("preferredNodeSelector").Index(i)
		if term.Weight < 1 || term.Weight > 100 {
			faults = append(faults, field.Invalid(at.Child("weight"), term.Weight, "must be from 1 to 100"))
		}
		if _, err := nodeaffinity.NewPreferredSchedulingTerms(s.PreferredNodeSelector[i : i+1]); err != nil {
			faults = append(faults,
				field.Invalid(at.Child("preference"), term.Preference, "must be a valid node selector: "+err.Error()))
		}
		faults = append(faults, checkNodeFields(&term.Preference, at.Child("preference", "matchFields"))...)
	}
	for i := range s.Tolerations {
		faults = append(faults, validation.Toleration(&s.Tolerations[i], at.Child("tolerations").Index(i))...)
	}
	return faults
}

// checkNodeFields returns the faults of a selector of nodes by fields that a parser of selectors admits.
func checkNodeFields(term *corev1.NodeSelectorTerm, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i := range term.MatchFields {
		by, at := &term.MatchFields[i], at.Index(i)
		if by.Key != metav1.ObjectNameField {
			faults = append(faults, field.Invalid(at.Child("key"), by.Key, "must be "+metav1.ObjectNameField))
			continue
		}
		for j, value := range by.Values {
			for _, text := range apivalidation.NameIsDNSSubdomain(value, false) {
				faults = append(faults, field.Invalid(at.Child("values").Index(j), value, "must be the name of a node: "+text))
			}
		}
	}
	return faults
}
