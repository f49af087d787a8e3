package validation

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// mostInLabel is the longest value of a label. The name of a BroadcastJob is one.
const mostInLabel = 63

// BroadcastJob returns what is invalid in a BroadcastJob, with its defaults or without. Of the pod template it checks
// only what is special to BroadcastJobs; the rest is for the API server.
func BroadcastJob(job *appsv1beta1.BroadcastJob) field.ErrorList {
	faults := apivalidation.ValidateObjectMeta(&job.ObjectMeta, true, nameInLabel, field.NewPath("metadata"))
	return append(faults, BroadcastJobSpec(&job.Spec, field.NewPath("spec"))...)
}

// BroadcastJobSpec returns what is invalid in the spec of a BroadcastJob at a path, as that of a job or of a template
// of jobs.
func BroadcastJobSpec(spec *appsv1beta1.BroadcastJobSpec, at *field.Path) field.ErrorList {
	faults := checkJobParallelism(spec.Parallelism, at.Child("parallelism"))
	faults = append(faults, checkCompletion(&spec.CompletionPolicy, at.Child("completionPolicy"))...)
	faults = append(faults, checkFailure(&spec.FailurePolicy, at.Child("failurePolicy"))...)
	ending := []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}
	if p := spec.Template.Spec.RestartPolicy; p != "" && !slices.Contains(ending, p) {
		faults = append(faults, field.NotSupported(at.Child("template", "spec", "restartPolicy"), p, ending))
	}
	for _, key := range []string{kruise.BroadcastJobNameKey, kruise.BroadcastJobControllerUIDKey} {
		if spec.Template.Labels[key] != "" {
			faults = append(faults,
				field.Forbidden(at.Child("template", "metadata", "labels"), key+" must be absent: the controller sets the label"))
		}
	}
	return faults
}

// nameInLabel validates a name that is also the value of a label.
func nameInLabel(name string, prefix bool) []string {
	var faults []string
	if len(name) > mostInLabel {
		faults = append(faults, fmt.Sprintf("must be no more than %d characters", mostInLabel))
	}
	if strings.Contains(name, ".") {
		faults = append(faults, "must not contain dots")
	}
	return append(faults, apivalidation.NameIsDNSSubdomain(name, prefix)...)
}

func checkJobParallelism(v *intstr.IntOrString, at *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	_, faults := Amount(v, math.MaxInt32, at)
	return faults
}

func checkCompletion(p *appsv1beta1.CompletionPolicy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	known := []appsv1beta1.CompletionPolicyType{appsv1beta1.Always, appsv1beta1.Never}
	if p.Type != "" && !slices.Contains(known, p.Type) {
		faults = append(faults, field.NotSupported(at.Child("type"), p.Type, known))
	}
	ttl, deadline := at.Child("ttlSecondsAfterFinished"), at.Child("activeDeadlineSeconds")
	switch n := p.TTLSecondsAfterFinished; {
	case n == nil:
	case p.Type == appsv1beta1.Never:
		faults = append(faults, field.Invalid(ttl, *n, "must be absent with type Never"))
	case *n < 0:
		faults = append(faults, field.Invalid(ttl, *n, "must not be negative"))
	}
	switch n := p.ActiveDeadlineSeconds; {
	case n == nil:
	case p.Type == appsv1beta1.Never:
		faults = append(faults, field.Invalid(deadline, *n, "must be absent with type Never"))
	case *n < 0:
		faults = append(faults, field.Invalid(deadline, *n, "must not be negative"))
	}
	return faults
}

func checkFailure(p *appsv1beta1.FailurePolicy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	known := []appsv1beta1.FailurePolicyType{
		appsv1beta1.FailurePolicyTypeFailFast, appsv1beta1.FailurePolicyTypeContinue, appsv1beta1.FailurePolicyTypePause,
	}
	if p.Type != "" && !slices.Contains(known, p.Type) {
		faults = append(faults, field.NotSupported(at.Child("type"), p.Type, known))
	}
	if p.RestartLimit < 0 {
		faults = append(faults, field.Invalid(at.Child("restartLimit"), p.RestartLimit, "must not be negative"))
	}
	return faults
}

// EffectiveBroadcastJob returns a spec with valid values in place of those that admission rejects, and that stored
// objects may have: the reconciler decides the same about both. An unknown completion policy is Always, an unknown
// failure policy is Continue, and a negative number is zero. The result shares the pod template.
func EffectiveBroadcastJob(of *appsv1beta1.BroadcastJobSpec) *appsv1beta1.BroadcastJobSpec {
	shallow := *of
	spec := &shallow
	completion, failure := &spec.CompletionPolicy, &spec.FailurePolicy
	switch completion.Type {
	case "", appsv1beta1.Always, appsv1beta1.Never:
	default:
		completion.Type = appsv1beta1.Always
	}
	switch failure.Type {
	case "", appsv1beta1.FailurePolicyTypeFailFast, appsv1beta1.FailurePolicyTypeContinue,
		appsv1beta1.FailurePolicyTypePause:
	default:
		failure.Type = appsv1beta1.FailurePolicyTypeContinue
	}
	failure.RestartLimit = max(failure.RestartLimit, 0)
	if n := completion.ActiveDeadlineSeconds; n != nil {
		completion.ActiveDeadlineSeconds = ptr.To(max(*n, 0))
	}
	if n := completion.TTLSecondsAfterFinished; n != nil {
		completion.TTLSecondsAfterFinished = ptr.To(max(*n, 0))
	}
	const nodes = 100 // so that each negative percentage is a negative number
	if n, err := BroadcastParallelism(spec, nodes); err == nil && n < 0 {
		spec.Parallelism = ptr.To(intstr.FromInt32(0))
	}
	return spec
}

// BroadcastParallelism returns how many pods may be active at once if a number of nodes is desired. A percentage is
// rounded up.
func BroadcastParallelism(spec *appsv1beta1.BroadcastJobSpec, desired int32) (int32, error) {
	n, err := scale.AmountOr(spec.Parallelism, math.MaxInt32, desired, scale.RoundUp)
	if err != nil {
		return 0, fmt.Errorf("spec.parallelism: %w", err)
	}
	return n, nil
}
