package validation

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSelector validates the selector of a workload, which must select the pods of its template.
func checkSelector(s *metav1.LabelSelector, template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
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

// checkRunsForever validates that pods do not end: a workload of the kind replaces every pod that does.
func checkRunsForever(pod *corev1.PodSpec, kind string, at *field.Path) field.ErrorList {
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
