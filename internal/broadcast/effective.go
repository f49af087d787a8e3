package broadcast

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Effective returns a spec with valid values in place of those that admission rejects, and that stored objects may
// have: Plan decides the same about both. An unknown completion policy is Always, an unknown failure policy is
// Continue, and a negative number is zero. The result shares the pod template.
func Effective(of *v1beta1.BroadcastJobSpec) *v1beta1.BroadcastJobSpec {
	shallow := *of
	spec := &shallow
	completion, failure := &spec.CompletionPolicy, &spec.FailurePolicy
	switch completion.Type {
	case "", v1beta1.Always, v1beta1.Never:
	default:
		completion.Type = v1beta1.Always
	}
	switch failure.Type {
	case "", v1beta1.FailurePolicyTypeFailFast, v1beta1.FailurePolicyTypeContinue, v1beta1.FailurePolicyTypePause:
	default:
		failure.Type = v1beta1.FailurePolicyTypeContinue
	}
	failure.RestartLimit = max(failure.RestartLimit, 0)
	if n := completion.ActiveDeadlineSeconds; n != nil {
		completion.ActiveDeadlineSeconds = ptr.To(max(*n, 0))
	}
	if n := completion.TTLSecondsAfterFinished; n != nil {
		completion.TTLSecondsAfterFinished = ptr.To(max(*n, 0))
	}
	const nodes = 100 // so that each negative percentage is a negative number
	if n, err := Parallelism(spec, nodes); err == nil && n < 0 {
		spec.Parallelism = ptr.To(intstr.FromInt32(0))
	}
	return spec
}
