package subsets

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// stall reports in the condition Stalled that the workload of a subset stands still. The condition of a workload comes
// after a wait, so that the object need not wait once more.
func (s *Snapshot) stall(p *Decision, list *conditions.List) {
	headline, stands := note.Headline(p.standing())
	if !stands {
		list.Remove(conditions.Stalled)
		return
	}
	c := conditions.Condition{
		Type: conditions.Stalled, Status: corev1.ConditionTrue, Reason: headline.Code, Message: headline.Message(),
	}
	if headline.Level != note.Blocked {
		c.Status = corev1.ConditionUnknown // it may go on by itself
	}
	if old := list.Find(c.Type); old != nil && old.Message != c.Message {
		list.Remove(c.Type)
	}
	list.Set(c, s.Now)
}

// standing are the reasons why subsets stand still.
func (p *Decision) standing() []note.Note {
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
