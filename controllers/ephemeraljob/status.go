package ephemeraljob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
)

// status returns the status that follows from the answers.
func (p *plan) status() v1alpha1.EphemeralJobStatus {
	s := *p.job.Status.DeepCopy()
	if p.job.DeletionTimestamp != nil || over(p.job) {
		return s
	}
	s.StartTime, s.Matches = p.started(), int32(len(p.targets))
	s.Waiting, s.Running = p.counts[podWaiting], p.counts[podRunning]
	s.Succeeded, s.Failed = p.counts[podSucceeded], p.counts[podFailed]
	if indexOf(&s, v1alpha1.EJobInitialized) < 0 {
		p.set(&s, v1alpha1.EJobInitialized, v1alpha1.EJobReasonInitialized, "")
	}
	switch {
	case p.invalid != nil:
		s.Phase = v1alpha1.EphemeralJobError
		p.set(&s, v1alpha1.EJobError, v1alpha1.EJobReasonError, p.invalid.Error())
	case p.turn != nil:
		unset(&s, v1alpha1.EJobMatchedEmpty, v1alpha1.EJobError)
		s.CompletionTime = &metav1.Time{Time: p.now}
		s.Phase = v1alpha1.EphemeralJobSucceeded
		condition := v1alpha1.EJobSucceeded
		if p.turn.Level == note.Blocked {
			s.Phase, condition = v1alpha1.EphemeralJobFailed, v1alpha1.EJobFailed
		}
		p.set(&s, condition, p.turn.Code, p.turn.Text)
	default:
		s.Phase = p.phase()
		p.explainStatus(&s)
	}
	return s
}

// phase returns how far a job is that goes on.
func (p *plan) phase() v1alpha1.EphemeralJobPhase {
	switch {
	case p.job.Spec.Paused:
		return v1alpha1.EphemeralJobPaused
	case len(p.targets) == 0:
		return v1alpha1.EphemeralJobWaiting
	case p.counts[podRunning] > 0:
		return v1alpha1.EphemeralJobRunning
	case p.counts[podWaiting] == p.wanted():
		return v1alpha1.EphemeralJobWaiting
	}
	return v1alpha1.EphemeralJobUnknown
}

// explainStatus sets the conditions of a job that goes on.
func (p *plan) explainStatus(s *v1alpha1.EphemeralJobStatus) {
	unset(s, v1alpha1.EJobError)
	if s.Matches == 0 {
		p.set(s, v1alpha1.EJobMatchedEmpty, v1alpha1.EJobReasonMatchEmpty, p.whyEmpty)
	} else {
		unset(s, v1alpha1.EJobMatchedEmpty)
	}
	var refusing []string
	for _, t := range p.targets {
		if r, ok := p.refused[t.pod.UID]; ok {
			refusing = append(refusing, t.pod.Name+": "+r.text)
		}
	}
	switch {
	case s.Failed > 0:
		p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonJobFailed, "The containers failed in "+p.failedPods())
	case len(refusing) > 0:
		p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonCreateFailed, fmt.Sprintf(
			"The API server refuses the containers for %d pods, as for %s", len(refusing), slices.Min(refusing)))
	default:
		unset(s, v1alpha1.EJobFailed)
	}
}

// counters are the fields of a status that are always written: lists print all of them.
func counters(s *v1alpha1.EphemeralJobStatus) map[string]any {
	return map[string]any{
		"phase": s.Phase, "match": s.Matches, "running": s.Running, "succeeded": s.Succeeded,
		"waiting": s.Waiting, "failed": s.Failed,
	}
}

// set sets a condition to True. One that is the same already keeps its times, and one whose text alone changes keeps
// that of its transition.
func (p *plan) set(s *v1alpha1.EphemeralJobStatus, kind v1alpha1.EphemeralJobConditionType, reason, message string) {
	now := metav1.NewTime(p.now)
	c := v1alpha1.EphemeralJobCondition{
		Type:               kind,
		Status:             corev1.ConditionTrue,
		LastProbeTime:      now,
		LastTransitionTime: now,
		Reason:             reason,
		Message:            message,
	}
	i := indexOf(s, kind)
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	old := &s.Conditions[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
		*old = c
	}
}

func indexOf(s *v1alpha1.EphemeralJobStatus, kind v1alpha1.EphemeralJobConditionType) int {
	return slices.IndexFunc(s.Conditions, func(c v1alpha1.EphemeralJobCondition) bool { return c.Type == kind })
}

func unset(s *v1alpha1.EphemeralJobStatus, kinds ...v1alpha1.EphemeralJobConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1alpha1.EphemeralJobCondition) bool {
		return slices.Contains(kinds, c.Type)
	})
}
