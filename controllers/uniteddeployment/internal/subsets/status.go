package subsets

import (
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/spread"
)

// Outcome is what became of the writes of a decision.
type Outcome struct {
	// Revise is the error of the revision, without which nothing else is written. Provision is that of creations,
	// deletions and labels of pods, and Update that of updates.
	Revise, Provision, Update error
	// Fault is why the spec cannot be met.
	Fault error
}

// Err returns all errors of writes.
func (o Outcome) Err() error { return errors.Join(o.Revise, o.Provision, o.Update) }

// Status returns the status of the object after a pass, which is nil where it could not be planned.
func (s *Snapshot) Status(p *Decision, o Outcome) v1beta1.UnitedDeploymentStatus {
	status := s.Object.Status.DeepCopy()
	list := workloads.Converted[workloads.Conditions](status.Conditions)
	if p != nil && o.Revise == nil {
		s.count(p, status)
		s.judgeUpdate(p, o, status, &list)
	}
	if p != nil {
		status.CollisionCount = workloads.Collisions(p.Resolution.Collisions, o.Revise)
		s.stall(p, &list)
	}
	provision := o.Provision
	if o.Revise != nil {
		provision = o.Revise
	}
	judge(&list, string(v1beta1.SubsetProvisioned), provision, s.Now)
	judge(&list, string(v1beta1.SubsetUpdated), o.Update, s.Now)
	status.ObservedGeneration = s.Object.Generation
	return reported(status, list, o.Fault, s.Now)
}

// Unusable returns the status of an object with whose spec nothing can be done.
func (s *Snapshot) Unusable(fault error) v1beta1.UnitedDeploymentStatus {
	status := s.Object.Status.DeepCopy()
	status.ObservedGeneration = s.Object.Generation
	return reported(status, workloads.Converted[workloads.Conditions](status.Conditions), fault, s.Now)
}

// reported completes a status with its conditions.
func reported(
	status *v1beta1.UnitedDeploymentStatus, list workloads.Conditions, fault error, now time.Time,
) v1beta1.UnitedDeploymentStatus {
	list.SetError(string(v1beta1.SubsetFailure), failure.Brief(fault), now)
	if c := list.Find(string(v1beta1.SubsetFailure)); c != nil {
		c.Reason = v1beta1.UnitedDeploymentSubsetError
	}
	status.Conditions = workloads.Converted[[]v1beta1.UnitedDeploymentCondition](list)
	return *status
}

// judge sets a condition that is False with an error. A condition whose text alone changes keeps its times.
func judge(list *workloads.Conditions, conditionType string, err error, now time.Time) {
	c := workloads.Condition{Type: conditionType, Status: corev1.ConditionTrue}
	if err != nil {
		c.Status, c.Reason = corev1.ConditionFalse, v1beta1.UnitedDeploymentSubsetError
		c.Message = failure.Brief(err).Error()
	}
	if old := list.Find(conditionType); old != nil && old.Status == c.Status {
		old.Message = c.Message
		return
	}
	list.Set(c, now)
}

// count sums up the workloads.
func (s *Snapshot) count(p *Decision, status *v1beta1.UnitedDeploymentStatus) {
	reserved := int32(0)
	was := *status
	status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.UpdatedReadyReplicas = 0, 0, 0, 0
	for _, child := range s.existing() {
		status.Replicas += child.Pods
		status.ReadyReplicas += child.Ready
		if child.Revision == p.Update && child.Observed {
			status.UpdatedReplicas += child.Updated
			status.UpdatedReadyReplicas += child.UpdatedReady
		}
	}
	status.SubsetStatuses = make([]v1beta1.UnitedDeploymentSubsetStatus, 0, len(p.Targets))
	for _, t := range p.Targets {
		reserved += t.reserved.Pods
		status.SubsetStatuses = append(status.SubsetStatuses, t.status())
	}
	status.ReservedPods = reserved
	status.Replicas = max(0, status.Replicas-reserved)
	if was.UpdatedRevision == p.Update && s.lags(p) {
		// A workload that has just been scaled reports in a moment: the numbers must not go down and up again for that.
		status.UpdatedReplicas, status.UpdatedReadyReplicas = was.UpdatedReplicas, was.UpdatedReadyReplicas
	}
	status.UpdatedRevision = p.Update
	status.LabelSelector = s.Selector
	if s.Mode == spread.Reserving {
		status.LabelSelector += "," + kruise.UnitedDeploymentReservedPodKey + "=false"
	}
}

// existing are the workloads of the kind of the template, those that are to be deleted included.
func (s *Snapshot) existing() []*Child {
	all := slices.Collect(maps.Values(s.Children))
	for _, child := range s.Surplus {
		if child.Kind == s.Template.Kind {
			all = append(all, child)
		}
	}
	return all
}

// lags reports whether a workload of the updated revision has yet to report about its spec.
func (s *Snapshot) lags(p *Decision) bool {
	for _, child := range s.Children {
		if child.Revision == p.Update && !child.Observed {
			return true
		}
	}
	return false
}

// status of a subset.
func (t *Target) status() v1beta1.UnitedDeploymentSubsetStatus {
	status := v1beta1.UnitedDeploymentSubsetStatus{
		Name: t.Subset.Name, Replicas: t.replicas, Partition: t.partition, ReservedPods: t.reserved.Pods,
	}
	if t.Child != nil {
		status.ReadyReplicas = t.Child.Ready
	}
	if c := t.condition; c.Status != "" {
		status.Conditions = []v1beta1.UnitedDeploymentSubsetCondition{{
			Type:               v1beta1.UnitedDeploymentSubsetSchedulable,
			Status:             c.Status,
			Reason:             c.Reason,
			Message:            c.Message,
			LastTransitionTime: metav1.NewTime(c.Since),
		}}
	}
	return status
}

// judgeUpdate decides whether the updated revision has been rolled out.
func (s *Snapshot) judgeUpdate(
	p *Decision, o Outcome, status *v1beta1.UnitedDeploymentStatus, list *workloads.Conditions,
) {
	status.CurrentRevision = p.Current
	if p.Current != p.Update && s.complete(p, o, status) {
		status.CurrentRevision = p.Update
	}
	c := workloads.Condition{
		Type: string(v1beta1.UnitedDeploymentUpdated), Status: corev1.ConditionTrue,
		Reason: v1beta1.UnitedDeploymentRevisionUpdated, Message: "updated to revision " + p.Update,
	}
	if status.CurrentRevision != p.Update {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, v1beta1.UnitedDeploymentRevisionUpdating,
			"updating to revision "+p.Update
	}
	list.Set(c, s.Now)
}

// complete reports whether all pods are updated and ready.
func (s *Snapshot) complete(p *Decision, o Outcome, status *v1beta1.UnitedDeploymentStatus) bool {
	if o.Err() != nil || len(p.Updates) > 0 || s.lags(p) || status.UpdatedReadyReplicas < status.Replicas {
		return false
	}
	for _, t := range p.Targets {
		if t.err != nil || t.Child == nil || t.Child.Revision != p.Update {
			return false
		}
	}
	return true
}

// Codes of what a UnitedDeployment waits for, besides those of its workloads.
const (
	noteSubsetFailure = "SubsetFailure"
	noteDeadline      = "ProgressDeadlineExceeded"
)

// stall reports in the condition Stalled that the workload of a subset stands still. The condition of a workload comes
// after a wait, so that the object need not wait once more.
func (s *Snapshot) stall(p *Decision, list *workloads.Conditions) {
	headline, stands := note.Headline(p.standing())
	if !stands {
		list.Remove(workloads.Stalled)
		return
	}
	c := workloads.Condition{
		Type: workloads.Stalled, Status: corev1.ConditionTrue, Reason: headline.Code, Message: headline.Message(),
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
		case field("type") == workloads.Stalled && status == corev1.ConditionTrue:
			return n
		case field("type") == workloads.Stalled && status == corev1.ConditionUnknown:
			n.Level = note.Waiting
			return n
		case field("type") == "Progressing" && status == corev1.ConditionFalse && n.Code == noteDeadline:
			return n
		}
	}
	return note.Note{}
}
