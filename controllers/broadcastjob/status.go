package broadcastjob

import (
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
)

// stalled returns a status with the condition Stalled, which reports why the job stands still. A job whose pods work
// for long, and one that has ended, does not.
func (p *plan) stalled(status v1beta1.BroadcastJobStatus) v1beta1.BroadcastJobStatus {
	list := conditionsOf(status.Conditions)
	if p.decision.StatusFirst || broadcast.Over(p.job) {
		list.Remove(conditions.Stalled)
		status.Conditions = stateOf(list)
		return status
	}
	limited := func(n note.Note) bool { return n.Code == broadcast.NoteLimited }
	notes := slices.DeleteFunc(slices.Clone(p.decision.Notes), limited)
	headline, _ := note.Headline(notes)
	p.wait = p.wait.Next(headline, status.Succeeded+status.Failed, p.input.Now)
	after := conditions.Stall(&list, conditions.Stalling{
		Now: p.input.Now, Headline: headline, Wait: p.wait, SameRevision: true,
	})
	p.after = requeue.Sooner(p.after, after)
	status.Conditions = stateOf(list)
	return status
}

func conditionsOf(all []v1beta1.JobCondition) conditions.List {
	list := make(conditions.List, 0, len(all)+1)
	for _, c := range all {
		list = append(list, conditions.Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastUpdateTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return list
}

func stateOf(list conditions.List) []v1beta1.JobCondition {
	var all []v1beta1.JobCondition
	for _, c := range list {
		all = append(all, v1beta1.JobCondition{
			Type: v1beta1.JobConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastProbeTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return all
}
