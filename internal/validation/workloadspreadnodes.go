package validation

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The operators of tolerations since Kubernetes 1.35, for which older libraries have no constants.
const (
	tolerationOpLt corev1.TolerationOperator = "Lt"
	tolerationOpGt corev1.TolerationOperator = "Gt"
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
		faults = append(faults, checkToleration(&s.Tolerations[i], at.Child("tolerations").Index(i))...)
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
			for _, text := range validation.NameIsDNSSubdomain(value, false) {
				faults = append(faults, field.Invalid(at.Child("values").Index(j), value, "must be the name of a node: "+text))
			}
		}
	}
	return faults
}

func checkToleration(t *corev1.Toleration, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if t.Key != "" {
		faults = append(faults, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	}
	switch {
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		faults = append(faults, field.Invalid(at.Child("operator"), t.Value, "value must be empty with the operator Exists"))
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		faults = append(faults, field.Invalid(at.Child("operator"), t.Operator, "must be Exists where key is empty"))
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		for _, text := range utilvalidation.IsValidLabelValue(t.Value) {
			faults = append(faults, field.Invalid(at.Child("operator"), t.Value, "value must be the value of a label: "+text))
		}
	case corev1.TolerationOpExists:
	case tolerationOpLt, tolerationOpGt:
		if n, err := strconv.ParseInt(t.Value, 10, 64); err != nil || strconv.FormatInt(n, 10) != t.Value {
			faults = append(faults,
				field.Invalid(at.Child("value"), t.Value, "must be a decimal integer of 64 bits with the operators Lt and Gt"))
		}
	default:
		faults = append(faults, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{
			corev1.TolerationOpEqual, corev1.TolerationOpExists,
		}))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		faults = append(faults, field.NotSupported(at.Child("effect"), t.Effect, []corev1.TaintEffect{
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
		}))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		faults = append(faults,
			field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute where tolerationSeconds is set"))
	}
	return faults
}
