package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// inTraffic reports whether the pod is not marked yet, or marked and still ready: it may have become ready after it was
// read for the mark, which then did not set Ready to False.
func (l look) inTraffic() bool {
	return statusOfCondition(l.pod, l.gate()) != corev1.ConditionFalse ||
		lifecycle.Ready(l.pod, l.now) != nil
}

// notReady takes a pod out of traffic.
func (l look) notReady() *write.Write {
	return l.write(write.Status, func(p *patch) error {
		mark := corev1.PodCondition{
			Type: l.gate(), Status: corev1.ConditionFalse,
			Reason: kruise.InPlaceUpdateReadyReasonStart, LastTransitionTime: metav1.NewTime(l.now),
		}
		l.unchanged(p)
		changes := []corev1.PodCondition{mark}
		if ready := lifecycle.Ready(l.pod, l.now, mark); ready != nil {
			changes = append(changes, *ready)
		}
		p.ops = append(p.ops, lifecycle.SetConditions(l.pod, changes...)...)
		return nil
	})
}

// takesOut reports whether a change takes a pod out of traffic. Without the gate nothing could.
func (p Policy) takesOut(pod *corev1.Pod, c *Change) bool {
	if c.Empty() || !lifecycle.HasGate(pod, p.Keys.InPlaceReadyOf(pod)) {
		return false
	}
	if p.Unready == UnreadyAlways && (len(c.Resources) == 0 || len(c.Images) > 0 || len(c.Env) > 0) {
		return true
	}
	return c.restartsAny(pod)
}

// restartsAny reports whether a change restarts a container of a pod.
func (c *Change) restartsAny(pod *corev1.Pod) bool {
	return len(c.Env) > 0 || len(c.Restarts(pod)) > 0 // a daemon restarts no container of a pod in traffic
}

func statusOfCondition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	if c := lifecycle.ConditionOf(pod, t); c != nil {
		return c.Status
	}
	return ""
}

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
