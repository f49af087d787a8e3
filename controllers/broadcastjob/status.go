package broadcastjob

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
)

// stalled returns the status with the condition Stalled, which reports why the job stands still. A job whose pods work
// for long, and one that has ended, does not.
func (p *plan) stalled() v1beta1.BroadcastJobStatus {
	status := p.status
	list := conditionsOf(status.Conditions)
	if p.ends || over(p.job) {
		list.Remove(workloads.Stalled)
		status.Conditions = stateOf(list)
		return status
	}
	headline, _ := note.Headline(p.notes)
	p.wait = p.wait.Next(headline, status.Succeeded+status.Failed, p.now)
	after := workloads.Stall(&list, workloads.Stalling{
		Now: p.now, Headline: headline, Wait: p.wait, SameRevision: true,
	})
	p.after = passes.Sooner(p.after, after)
	status.Conditions = stateOf(list)
	return status
}

func conditionsOf(all []v1beta1.JobCondition) workloads.Conditions {
	list := make(workloads.Conditions, 0, len(all)+1)
	for _, c := range all {
		list = append(list, workloads.Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastUpdateTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return list
}

func stateOf(list workloads.Conditions) []v1beta1.JobCondition {
	var all []v1beta1.JobCondition
	for _, c := range list {
		all = append(all, v1beta1.JobCondition{
			Type: v1beta1.JobConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastProbeTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return all
}

// counters are the fields of a status that are always written: lists print all of them.
func counters(s *v1beta1.BroadcastJobStatus) map[string]any {
	return map[string]any{
		"desired": s.Desired, "active": s.Active, "succeeded": s.Succeeded, "failed": s.Failed, "phase": s.Phase,
	}
}
