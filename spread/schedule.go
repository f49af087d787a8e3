package spread

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of a Condition.
const (
	// ReasonReschedule comes with False when pods find no node, and with True when no reserved pods are left.
	ReasonReschedule = "reschedule"
	// ReasonRecover comes with True when the time without new pods has passed.
	ReasonRecover = "recover"
	// ReasonCreated comes with False when a subset is new and its first pods must prove themselves.
	ReasonCreated = "created"
)

// Condition says whether a subset is schedulable. The zero value is that of a subset without a condition, which is
// schedulable.
type Condition struct {
	// Status is False as long as a subset is unschedulable.
	Status  corev1.ConditionStatus
	Reason  string
	Message string
	// Since is when status or reason changed last.
	Since time.Time
}

// Unschedulable reports whether the condition marks a subset as unschedulable.
func (c Condition) Unschedulable() bool { return c.Status == corev1.ConditionFalse }

// Set returns the condition with another content. One with the same status and reason stays as it is.
func (c Condition) Set(status corev1.ConditionStatus, reason, message string, now time.Time) Condition {
	if c.Status == status && c.Reason == reason {
		return c
	}
	return Condition{Status: status, Reason: reason, Message: message, Since: now}
}

// Windows are the times of adaptive scheduling.
type Windows struct {
	// Critical is how long a pod may wait for a node before it counts.
	Critical time.Duration
	// Unschedulable is how long a subset then stays unschedulable. In mode Reserving, it is how long a reserved pod must
	// be ready.
	Unschedulable time.Duration
}

// State is a subset that has a workload.
type State struct {
	// Condition as it was reported last.
	Condition Condition
	// Pods of the subset. They matter only while some are not ready.
	Pods []*corev1.Pod
}

// Verdict is what Schedule and Reserve decide about a subset.
type Verdict struct {
	// Unschedulable reports whether the subset gets no more replicas than it can run.
	Unschedulable bool
	// Condition to report.
	Condition Condition
	// RecheckAfter is when to decide again although nothing changes; zero for never.
	RecheckAfter time.Duration
}

// Schedule decides whether a subset is unschedulable: because a pod has waited for a node for too long, or because one
// had not long ago.
func Schedule(s State, w Windows, now time.Time) Verdict {
	v := Verdict{Condition: s.Condition}
	if s.Condition.Unschedulable() {
		if rest := s.Condition.Since.Add(w.Unschedulable).Sub(now); rest > 0 {
			v.Unschedulable, v.RecheckAfter = true, rest
			return v
		}
		v.Condition = v.Condition.Set(corev1.ConditionTrue, ReasonRecover, "", now)
	}
	stuck := 0
	for _, pod := range s.Pods {
		switch late, rest := waits(pod, w.Critical, now); {
		case late:
			stuck++
		case rest > 0:
			v.recheck(rest)
		}
	}
	if stuck > 0 {
		v.Unschedulable, v.RecheckAfter = true, w.Unschedulable
		v.Condition = v.Condition.Set(corev1.ConditionFalse, ReasonReschedule,
			fmt.Sprintf("timeout pending pods found: %d", stuck), now)
	}
	return v
}

func (v *Verdict) recheck(after time.Duration) {
	if after > 0 && (v.RecheckAfter == 0 || after < v.RecheckAfter) {
		v.RecheckAfter = after
	}
}

// IsUnschedulable reports whether the scheduler has found no node for a pod.
func IsUnschedulable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName != "" {
		return false
	}
	c := condition(pod, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// waits reports whether a pod has waited for a node for too long, or after what time it will have.
func waits(pod *corev1.Pod, critical time.Duration, now time.Time) (late bool, rest time.Duration) {
	if !IsUnschedulable(pod) {
		return false, 0
	}
	rest = pod.CreationTimestamp.Add(critical).Sub(now)
	return rest <= 0, rest
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}
