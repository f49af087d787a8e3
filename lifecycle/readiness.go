package lifecycle

import (
	"cmp"
	"encoding/json"
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

// IsHeld reports whether an entry of a writer keeps the pod not ready.
func IsHeld(pod *corev1.Pod, userAgent, key string) bool {
	entries, err := entriesOf(pod)
	return err == nil && slices.Contains(entries, kruise.NotReadyEntry{UserAgent: userAgent, Key: key})
}

// held returns the conditions after which an entry keeps the pod not ready; none where nothing is to be written.
func held(pod *corev1.Pod, entry kruise.NotReadyEntry, now time.Time) ([]corev1.PodCondition, error) {
	entries, err := entriesOf(pod)
	if err != nil || !HasGate(pod, kruise.KruisePodReadyConditionType) || slices.Contains(entries, entry) {
		return nil, err
	}
	mark, err := kruiseReady(append(entries, entry), now)
	if err != nil {
		return nil, err
	}
	changes := []corev1.PodCondition{mark}
	if ready := Ready(pod, now, mark); ready != nil {
		changes = append(changes, *ready)
	}
	return changes, nil
}

// released returns the conditions after which an entry no longer keeps the pod not ready; none where nothing is to be
// written.
func released(pod *corev1.Pod, entry kruise.NotReadyEntry, now time.Time) ([]corev1.PodCondition, error) {
	entries, err := entriesOf(pod)
	if err != nil || !HasGate(pod, kruise.KruisePodReadyConditionType) || !slices.Contains(entries, entry) {
		return nil, err
	}
	left, err := kruiseReady(slices.DeleteFunc(entries, func(e kruise.NotReadyEntry) bool { return e == entry }), now)
	if err != nil {
		return nil, err
	}
	return []corev1.PodCondition{left}, nil
}

// Ready returns the condition Ready as it follows from all readiness gates once the given conditions are written. It
// returns nil unless that is False and the pod's condition is not: only the kubelet makes a pod ready.
func Ready(pod *corev1.Pod, now time.Time, changes ...corev1.PodCondition) *corev1.PodCondition {
	ready, containers := ConditionOf(pod, corev1.PodReady), ConditionOf(pod, corev1.ContainersReady)
	if ready == nil || ready.Status == corev1.ConditionFalse || containers == nil ||
		containers.Status != corev1.ConditionTrue {
		return nil
	}
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		c := ConditionOf(pod, gate.ConditionType)
		if i := slices.IndexFunc(changes, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType }); i >= 0 {
			c = &changes[i]
		}
		switch {
		case c == nil:
			missing = append(missing, fmt.Sprintf("readiness gate %q has no condition", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("readiness gate %q is %s", gate.ConditionType, c.Status))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
		Reason: kruise.ReasonReadinessGatesNotReady, Message: strings.Join(missing, ", "),
	}
}

// kruiseReady returns the condition KruisePodReady with these entries.
func kruiseReady(entries []kruise.NotReadyEntry, now time.Time) (corev1.PodCondition, error) {
	slices.SortFunc(entries, func(a, b kruise.NotReadyEntry) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	if entries == nil {
		entries = []kruise.NotReadyEntry{}
	}
	message, err := json.Marshal(entries)
	if err != nil {
		return corev1.PodCondition{}, fmt.Errorf("encode entries of %s: %w", kruise.KruisePodReadyConditionType, err)
	}
	status := corev1.ConditionTrue
	if len(entries) > 0 {
		status = corev1.ConditionFalse
	}
	return corev1.PodCondition{
		Type: kruise.KruisePodReadyConditionType, Status: status,
		LastTransitionTime: metav1.NewTime(now), Message: string(message),
	}, nil
}

// entriesOf returns the entries in the message. A message of another format is an error: replacing it would end the
// reason of its writer to keep the pod not ready.
func entriesOf(pod *corev1.Pod) ([]kruise.NotReadyEntry, error) {
	c := ConditionOf(pod, kruise.KruisePodReadyConditionType)
	if c == nil || c.Status == corev1.ConditionTrue || c.Message == "" {
		return nil, nil
	}
	var entries []kruise.NotReadyEntry
	if err := json.Unmarshal([]byte(c.Message), &entries); err != nil {
		return nil, fmt.Errorf("read entries of %s: %w", kruise.KruisePodReadyConditionType, err)
	}
	return entries, nil
}
