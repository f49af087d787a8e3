package ephemeral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
)

// begin fills in what does not depend on the pods.
func (p *Pass) begin() {
	s := &p.status
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: p.in.Now}
	}
	if !slices.ContainsFunc(s.Conditions, func(c v1alpha1.EphemeralJobCondition) bool {
		return c.Type == v1alpha1.EJobInitialized
	}) {
		p.set(s, v1alpha1.EJobInitialized, v1alpha1.EJobReasonInitialized, "")
	}
	s.Matches, s.Running, s.Succeeded, s.Waiting, s.Failed = 0, 0, 0, 0, 0
}

func (p *Pass) count(state State) {
	s := &p.status
	s.Matches++
	switch state {
	case Waiting:
		s.Waiting++
	case Running:
		s.Running++
	case Succeeded:
		s.Succeeded++
	case Failed:
		s.Failed++
	case Unselected, Inactive, Taken, Due:
	}
}

// complete ends a job for which as many targets as it is for have ended.
func (p *Pass) complete() {
	s := &p.status
	if s.Failed == 0 {
		text := fmt.Sprintf("The containers succeeded in %d pods", s.Succeeded)
		p.set(s, v1alpha1.EJobSucceeded, v1alpha1.EJobReasonJobSucceeded, text)
		p.end(v1alpha1.EphemeralJobSucceeded, note.Note{Code: NoteSucceeded, Text: text})
		return
	}
	text := fmt.Sprintf("The containers failed in %d pods and succeeded in %d: %s",
		s.Failed, s.Succeeded, some(p.namesOf(Failed)))
	p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonJobFailed, text)
	p.end(v1alpha1.EphemeralJobFailed, blocked(NoteFailed, "", text))
}

// expire ends a job that took too long. Containers that run go on.
func (p *Pass) expire() {
	s := &p.status
	text := fmt.Sprintf("The job was active for longer than its deadline: %d of %d pods have ended",
		s.Succeeded+s.Failed, max(p.wanted(), s.Matches))
	p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonDeadlineExceeded, text)
	p.end(v1alpha1.EphemeralJobFailed, blocked(NoteDeadline, "", text))
}

func (p *Pass) end(phase v1alpha1.EphemeralJobPhase, turn note.Note) {
	p.open = false
	p.status.Phase, p.status.CompletionTime = phase, &metav1.Time{Time: p.in.Now}
	unset(&p.status, v1alpha1.EJobMatchedEmpty, v1alpha1.EJobError)
	p.turn = &turn
	p.explain(turn)
}

func (p *Pass) namesOf(state State) []string {
	var names []string
	for _, target := range p.Targets {
		if target.State == state {
			names = append(names, target.Pod.Name)
		}
	}
	return names
}

// phase returns how far a job is that goes on.
func (p *Pass) phase(s *v1alpha1.EphemeralJobStatus) v1alpha1.EphemeralJobPhase {
	switch {
	case p.in.Job.Spec.Paused:
		return v1alpha1.EphemeralJobPaused
	case s.Matches == 0:
		return v1alpha1.EphemeralJobWaiting
	case s.Running > 0:
		return v1alpha1.EphemeralJobRunning
	case s.Waiting == p.wanted():
		return v1alpha1.EphemeralJobWaiting
	}
	return v1alpha1.EphemeralJobUnknown
}

// set sets a condition to True. One that is the same already keeps its times, and one whose text alone changes keeps
// that of its transition.
func (p *Pass) set(s *v1alpha1.EphemeralJobStatus, kind v1alpha1.EphemeralJobConditionType, reason, message string) {
	now := metav1.NewTime(p.in.Now)
	c := v1alpha1.EphemeralJobCondition{
		Type:               kind,
		Status:             corev1.ConditionTrue,
		LastProbeTime:      now,
		LastTransitionTime: now,
		Reason:             reason,
		Message:            message,
	}
	i := slices.IndexFunc(s.Conditions, func(old v1alpha1.EphemeralJobCondition) bool { return old.Type == kind })
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

func unset(s *v1alpha1.EphemeralJobStatus, kinds ...v1alpha1.EphemeralJobConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1alpha1.EphemeralJobCondition) bool {
		return slices.Contains(kinds, c.Type)
	})
}
