package ephemeraljob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// validate returns what is invalid in an EphemeralJob. Of the containers it checks what is special to ephemeral
// ones; the rest is for the API server. Policies that are left out are those of the API server.
func validate(job *v1alpha1.EphemeralJob) field.ErrorList {
	at := field.NewPath("spec")
	faults := checkJobSelector(job.Spec.Selector, at.Child("selector"))
	faults = append(faults, checkNegative(job.Spec.Replicas, at.Child("replicas"))...)
	faults = append(faults, checkNegative(job.Spec.Parallelism, at.Child("parallelism"))...)
	faults = append(faults, checkNegative(job.Spec.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
	faults = append(faults, checkNegative(job.Spec.TTLSecondsAfterFinished, at.Child("ttlSecondsAfterFinished"))...)
	return append(faults, checkEphemeralContainers(job.Spec.Template.EphemeralContainers, ephemeralContainersPath())...)
}

// ephemeralContainersPath is where the containers of an EphemeralJob stand.
func ephemeralContainersPath() *field.Path {
	return field.NewPath("spec", "template", "ephemeralContainers")
}

// validateUpdate returns the forbidden changes of an update: pods that have the containers keep them as they are, and
// so the selector and the template do not change.
func validateUpdate(job, stored *v1alpha1.EphemeralJob) field.ErrorList {
	const text = "must not change; create another EphemeralJob"
	var faults field.ErrorList
	if !apiequality.Semantic.DeepEqual(job.Spec.Selector, stored.Spec.Selector) {
		faults = append(faults, field.Forbidden(field.NewPath("spec", "selector"), text))
	}
	if !apiequality.Semantic.DeepEqual(job.Spec.Template, stored.Spec.Template) {
		faults = append(faults, field.Forbidden(field.NewPath("spec", "template"), text))
	}
	return faults
}

func checkJobSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(at, "", "must not be empty: it would select every pod of the namespace")}
	}
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil && len(faults) == 0 {
		faults = append(faults, field.Invalid(at, "", err.Error()))
	}
	return faults
}

func checkNegative[N int32 | int64](n *N, at *field.Path) field.ErrorList {
	if n == nil || *n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *n, "must not be negative")}
}

func checkEphemeralContainers(containers []corev1.EphemeralContainer, at *field.Path) field.ErrorList {
	if len(containers) == 0 {
		return field.ErrorList{field.Required(at, "must have a container")}
	}
	var faults field.ErrorList
	for i := range containers {
		faults = append(faults, checkEphemeralContainer(&containers[i], at.Index(i))...)
	}
	return faults
}

// checkEphemeralContainer returns the fields that an ephemeral container must not have.
func checkEphemeralContainer(c *corev1.EphemeralContainer, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ports", len(c.Ports) > 0},
		{"resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
		{"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
	} {
		if f.set {
			faults = append(faults, field.Forbidden(at.Child(f.name), "must be absent in an ephemeral container"))
		}
	}
	if strings.TrimSpace(c.Image) != c.Image { // which a pod must not have, and a pod template may
		faults = append(faults, field.Invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	for i := range c.VolumeMounts {
		mount, at := &c.VolumeMounts[i], at.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			faults = append(faults, field.Forbidden(at.Child("subPath"), "must be absent in an ephemeral container"))
		}
		if mount.SubPathExpr != "" {
			faults = append(faults, field.Forbidden(at.Child("subPathExpr"), "must be absent in an ephemeral container"))
		}
	}
	return faults
}
