package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// EnsureReadinessGate adds the readiness gate InPlaceUpdateReady, or the one that the keys name, to the spec of a pod
// that is about to be created, and reports whether it was missing. Without the gate no write takes the pod out of
// traffic while its containers restart. The gates of a created pod cannot change. Call Next for each pod that has the
// gate: it opens the gate.
func EnsureReadinessGate(spec *corev1.PodSpec, keys *kruise.Keys) bool {
	gate := keys.InPlaceReadyGate()
	if slices.ContainsFunc(spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == gate
	}) {
		return false
	}
	spec.ReadinessGates = append(slices.Clip(spec.ReadinessGates), corev1.PodReadinessGate{
		ConditionType: gate,
	})
	return true
}
