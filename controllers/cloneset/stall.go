package cloneset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// conditionStalled is the type of the condition that reports why a set stands still. The reference has no such condition;
// the name is the one that tools for status know.
const conditionStalled v1beta1.CloneSetConditionType = "Stalled"

// stallAfter is how long a set waits for something that may come by itself before that is reported.
const stallAfter = time.Minute

// stall reports the headline of the pass in a condition: at once where the set is blocked until an object changes, and after
// a while where it waits. The text stays as long as the reason and the revision do, so that a reason costs one write.
func (r *Reconciler) stall(s *snapshot, p *plan, status *v1beta1.CloneSetStatus) {
	headline, ok := note.Headline(p.pass.Notes())
	if !ok || !p.runs(s) {
		headline = note.Note{}
	}
	since := s.now
	r.memory.note(s.key(), func(k *knowledge) {
		if k.waits != headline.Code {
			k.waits, k.since = headline.Code, s.now
		}
		since = k.since
	})
	condition := v1beta1.CloneSetCondition{Type: conditionStalled, Status: corev1.ConditionTrue, Reason: headline.Code, Message: headline.Message()}
	if headline.Level != note.Blocked {
		condition.Status = corev1.ConditionUnknown // it may go on by itself
	}
	old := conditionOf(&s.set.Status, conditionStalled)
	rest := since.Add(stallAfter).Sub(s.now)
	switch {
	case old != nil && old.Reason == condition.Reason && old.Status == condition.Status && s.set.Status.UpdateRevision == status.UpdateRevision:
	case headline.Level == note.Blocked:
		remove(status, conditionStalled)
		put(status, condition, s.now)
	case rest > 0:
		// Nothing is reported that may pass, and nothing taken back that may return: a container that crashes runs in between.
		if headline.Code != "" || old != nil {
			p.after.In(rest)
		}
	default:
		remove(status, conditionStalled)
		if headline.Code != "" {
			put(status, condition, s.now)
		}
	}
}
