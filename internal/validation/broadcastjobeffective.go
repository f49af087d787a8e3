package validation

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/scale"
)

// EffectiveBroadcastJob returns a spec with valid values in place of those that admission rejects, and that stored
// objects may have: the reconciler decides the same about both. An unknown completion policy is Always, an unknown
// failure policy is Continue, and a negative number is zero. The result shares the pod template.
func EffectiveBroadcastJob(of *v1beta1.BroadcastJobSpec) *v1beta1.BroadcastJobSpec {
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
	if n, err := BroadcastParallelism(spec, nodes); err == nil && n < 0 {
		spec.Parallelism = ptr.To(intstr.FromInt32(0))
	}
	return spec
}

// BroadcastParallelism returns how many pods may be active at once if a number of nodes is desired. A percentage is
// rounded up.
func BroadcastParallelism(spec *v1beta1.BroadcastJobSpec, desired int32) (int32, error) {
	n, err := scale.AmountOr(spec.Parallelism, math.MaxInt32, desired, scale.RoundUp)
	if err != nil {
		return 0, fmt.Errorf("spec.parallelism: %w", err)
	}
	return n, nil
}
