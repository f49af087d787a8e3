package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// HasGate reports whether the pod has a readiness gate for a condition.
func HasGate(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == condition
	})
}

// ConditionOf returns the pod's condition of a type, in place; nil where the pod has none.
func ConditionOf(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	if i := indexOf(pod, t); i >= 0 {
		return &pod.Status.Conditions[i]
	}
	return nil
}

// Readiness returns the condition Ready as the kubelet computes it from the containers and all readiness gates once the
// given conditions are written, in both directions. It returns nil where the pod has the condition with that status, or
// ContainersReady is not known. Write it where no kubelet does, as in a simulation; on nodes write what Ready returns.
func Readiness(pod *corev1.Pod, now time.Time, changes ...corev1.PodCondition) *corev1.PodCondition {
	current := func(t corev1.PodConditionType) *corev1.PodCondition {
		if i := slices.IndexFunc(changes, func(c corev1.PodCondition) bool { return c.Type == t }); i >= 0 {
			return &changes[i]
		}
		return ConditionOf(pod, t)
	}
	containers := current(corev1.ContainersReady)
	if containers == nil {
		return nil
	}
	c := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
	}
	missing := missingGates(pod, current)
	switch {
	case containers.Status != corev1.ConditionTrue:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, containers.Reason, containers.Message
	case len(missing) > 0:
		c.Status, c.Reason, c.Message =
			corev1.ConditionFalse, kruise.ReasonReadinessGatesNotReady, strings.Join(missing, ", ")
	}
	if ready := ConditionOf(pod, corev1.PodReady); ready != nil && ready.Status == c.Status {
		return nil
	}
	return &c
}

// missingGates says which readiness gates of the pod are not open.
func missingGates(pod *corev1.Pod, current func(corev1.PodConditionType) *corev1.PodCondition) []string {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := current(gate.ConditionType); {
		case c == nil:
			missing = append(missing, fmt.Sprintf("readiness gate %q has no condition", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("readiness gate %q is %s", gate.ConditionType, c.Status))
		}
	}
	return missing
}

// Ready returns the condition Ready as it follows from all readiness gates once the given conditions are written. It
// returns nil unless that is False and the pod's condition is not: only the kubelet makes a pod ready.
func Ready(pod *corev1.Pod, now time.Time, changes ...corev1.PodCondition) *corev1.PodCondition {
	containers := ConditionOf(pod, corev1.ContainersReady)
	if ConditionOf(pod, corev1.PodReady) == nil || containers == nil || containers.Status != corev1.ConditionTrue {
		return nil
	}
	if c := Readiness(pod, now, changes...); c != nil && c.Status == corev1.ConditionFalse {
		return c
	}
	return nil
}
