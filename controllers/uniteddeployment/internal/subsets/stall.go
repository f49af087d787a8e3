package subsets

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
)

// Codes of what a UnitedDeployment waits for, beside those of its workloads.
const (
	noteSubsetFailure = "SubsetFailure"
	noteDeadline      = "ProgressDeadlineExceeded"
)

// Stall reports in the condition Stalled of a status that a workload stands still. It returns what the object waits
// for, which the next snapshot knows, and when to look again; zero for never.
func (s *Snapshot) Stall(p *Pass, status *v1beta1.UnitedDeploymentStatus) (conditions.Wait, time.Duration) {
	headline, _ := note.Headline(p.standing())
	before, same := s.Known.Wait, s.Object.Status.UpdatedRevision == status.UpdatedRevision
	if !same {
		before = conditions.Wait{}
	}
	wait := before.Next(headline, status.UpdatedReplicas, s.Now)
	list := conditionsOf(status)
	after := conditions.Stall(&list, conditions.Stalling{
		Now: s.Now, Headline: headline, Wait: wait, SameRevision: same,
	})
	setConditions(status, list)
	return wait, after
}

// standing are the reasons why subsets stand still.
func (p *Pass) standing() []note.Note {
	var notes []note.Note
	for _, t := range p.Targets {
		if t.err != nil {
			notes = append(notes, note.Note{
				Level: note.Blocked, Code: noteSubsetFailure, Object: t.Subset.Name, Text: t.err.Error(),
			})
		}
		if t.Child == nil {
			continue
		}
		if n := standing(t.Child.Object); n.Code != "" {
			n.Object = t.Subset.Name
			notes = append(notes, n)
		}
	}
	return notes
}

// standing returns why a workload stands still, as its conditions say; the zero note for one that does not.
func standing(workload *unstructured.Unstructured) note.Note {
	list, _, _ := stored.Value[[]any](workload, "status", "conditions")
	for _, c := range list {
		condition, _ := c.(map[string]any)
		field := func(name string) string { text, _ := condition[name].(string); return text }
		n := note.Note{
			Level: note.Blocked, Code: failure.BriefText(field("reason")), Text: failure.BriefText(field("message")),
		}
		switch status := corev1.ConditionStatus(field("status")); {
		case field("type") == conditions.Stalled && status == corev1.ConditionTrue:
			return n
		case field("type") == conditions.Stalled && status == corev1.ConditionUnknown:
			n.Level = note.Waiting
			return n
		case field("type") == "Progressing" && status == corev1.ConditionFalse && n.Code == noteDeadline:
			return n
		}
	}
	return note.Note{}
}
