package validation

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// The operators of tolerations since Kubernetes 1.35, for which older libraries have no constants.
const (
	tolerationOpLt corev1.TolerationOperator = "Lt"
	tolerationOpGt corev1.TolerationOperator = "Gt"
)

// Selector validates the selector of a workload, which must select the pods of its template.
func Selector(s *metav1.LabelSelector, template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	here := at.Child("selector")
	if s == nil {
		return field.ErrorList{field.Required(here, "")}
	}
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, here)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return append(faults, field.Invalid(here, s, "an empty selector would select every pod"))
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		if len(faults) == 0 {
			faults = append(faults, field.Invalid(here, s, err.Error()))
		}
		return faults
	}
	if !selector.Matches(labels.Set(template.Labels)) {
		faults = append(faults, field.Invalid(at.Child("template", "metadata", "labels"), template.Labels,
			"the selector does not match these labels"))
	}
	return faults
}

// RunsForever validates that pods do not end: a workload of the kind replaces every pod that does.
func RunsForever(pod *corev1.PodSpec, kind string, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if p := pod.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		faults = append(faults,
			field.NotSupported(at.Child("restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if pod.ActiveDeadlineSeconds != nil {
		faults = append(faults, field.Forbidden(at.Child("activeDeadlineSeconds"), "the pods of a "+kind+" have no deadline"))
	}
	return faults
}

// Toleration validates a toleration as the API server validates that of a pod.
func Toleration(t *corev1.Toleration, at *field.Path) field.ErrorList {
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

// LabelSelector validates a selector.
func LabelSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil && len(faults) == 0 {
		faults = append(faults, field.Invalid(at, s, err.Error()))
	}
	return faults
}

// Amount returns a number of pods, or a percentage of total rounded up; 0 for nil.
func Amount(v *intstr.IntOrString, total int32, at *field.Path) (int32, field.ErrorList) {
	n, err := scale.AmountOr(v, 0, max(total, 0), scale.RoundUp)
	if err != nil {
		return 0, field.ErrorList{field.Invalid(at, v.String(), "must be a number, or a percentage as 20%: "+err.Error())}
	}
	// Every percentage of no pods is 0, so the sign is that of a percentage of 100.
	if sign, _ := scale.AmountOr(v, 0, 100, scale.RoundDown); n < 0 || sign < 0 {
		return 0, field.ErrorList{field.Invalid(at, v.String(), "must not be negative")}
	}
	return n, nil
}

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
