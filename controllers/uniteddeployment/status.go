package uniteddeployment

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/spread"
)

// report writes the status, if it changed, and emits what failed.
func (r *Reconciler) report(ctx context.Context, s *snapshot, p *plan) error {
	fault := p.fault(s)
	fresh := s.object.DeepCopy()
	fresh.Status = *s.status(p, fault)
	_, err := r.status.Write(ctx, s.object, fresh, map[string]any{
		"replicas": fresh.Status.Replicas, "updatedReplicas": fresh.Status.UpdatedReplicas, "currentRevision": fresh.Status.CurrentRevision,
	})
	r.emitFailures(s, p, fault)
	return err
}

// status computes the status as the pass leaves the object.
func (s *snapshot) status(p *plan, fault error) *v1beta1.UnitedDeploymentStatus {
	status := s.object.Status.DeepCopy()
	status.ObservedGeneration = s.object.Generation
	list := conditionsOf(status)
	if s.invalid == nil && p.reviseErr == nil {
		s.count(p, status)
		s.judgeUpdate(p, status, &list)
	}
	if s.invalid == nil {
		status.CollisionCount = p.resolution.Collisions
		s.judge(&list, string(v1beta1.SubsetProvisioned), p.provisionErr)
		s.judge(&list, string(v1beta1.SubsetUpdated), p.updateErr)
	}
	list.SetError(string(v1beta1.SubsetFailure), failure.Brief(fault), s.now)
	if c := list.Find(string(v1beta1.SubsetFailure)); c != nil {
		c.Reason = v1beta1.UnitedDeploymentSubsetError
	}
	status.Conditions = nil
	for _, c := range list {
		status.Conditions = append(status.Conditions, v1beta1.UnitedDeploymentCondition{
			Type: v1beta1.UnitedDeploymentConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return status
}

// judge sets a condition that is False with an error.
func (s *snapshot) judge(list *conditions.List, conditionType string, err error) {
	old := list.Find(conditionType)
	if err == nil {
		if old == nil || old.Status != corev1.ConditionTrue {
			list.Set(conditions.Condition{Type: conditionType, Status: corev1.ConditionTrue}, s.now)
		}
		return
	}
	fresh := conditions.Condition{Type: conditionType, Status: corev1.ConditionFalse, Reason: v1beta1.UnitedDeploymentSubsetError, Message: failure.Brief(err).Error()}
	if old != nil && old.Status == fresh.Status {
		old.Message = fresh.Message
		return
	}
	list.Set(fresh, s.now)
}

// count sums up the workloads.
func (s *snapshot) count(p *plan, status *v1beta1.UnitedDeploymentStatus) {
	reserved := int32(0)
	was := *status
	status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.UpdatedReadyReplicas = 0, 0, 0, 0
	for _, child := range s.existing() {
		status.Replicas += child.Pods
		status.ReadyReplicas += child.Ready
		if child.Revision == p.update && child.Observed {
			status.UpdatedReplicas += child.Updated
			status.UpdatedReadyReplicas += child.UpdatedReady
		}
	}
	status.SubsetStatuses = make([]v1beta1.UnitedDeploymentSubsetStatus, 0, len(p.targets))
	for _, t := range p.targets {
		reserved += t.reserved.Pods
		status.SubsetStatuses = append(status.SubsetStatuses, t.status())
	}
	status.ReservedPods = reserved
	status.Replicas = max(0, status.Replicas-reserved)
	if was.UpdatedRevision == p.update && s.lags(p) {
		// A workload that has just been scaled reports in a moment: the numbers must not go down and up again for that.
		status.UpdatedReplicas, status.UpdatedReadyReplicas = was.UpdatedReplicas, was.UpdatedReadyReplicas
	}
	status.UpdatedRevision = p.update
	status.LabelSelector = s.selector
	if s.mode == spread.Reserving {
		status.LabelSelector += "," + kruise.UnitedDeploymentReservedPodKey + "=false"
	}
}

// existing are the workloads of the kind of the template, those that are to be deleted included.
func (s *snapshot) existing() []*subsets.Child {
	var all []*subsets.Child
	for _, child := range s.children {
		all = append(all, child)
	}
	for _, child := range s.surplus {
		if child.Kind == s.template.Kind {
			all = append(all, child)
		}
	}
	return all
}

// lags reports whether a workload of the updated revision has yet to report about its spec.
func (s *snapshot) lags(p *plan) bool {
	for _, child := range s.children {
		if child.Revision == p.update && !child.Observed {
			return true
		}
	}
	return false
}

// status of a subset.
func (t *target) status() v1beta1.UnitedDeploymentSubsetStatus {
	status := v1beta1.UnitedDeploymentSubsetStatus{Name: t.subset.Name, Replicas: t.replicas, Partition: t.partition, ReservedPods: t.reserved.Pods}
	if t.child != nil {
		status.ReadyReplicas = t.child.Ready
	}
	if c := t.condition; c.Status != "" {
		status.Conditions = []v1beta1.UnitedDeploymentSubsetCondition{{
			Type: v1beta1.UnitedDeploymentSubsetSchedulable, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: metav1.NewTime(c.Since),
		}}
	}
	return status
}

// judgeUpdate decides whether the updated revision has been rolled out.
func (s *snapshot) judgeUpdate(p *plan, status *v1beta1.UnitedDeploymentStatus, list *conditions.List) {
	status.CurrentRevision = p.current
	if p.current != p.update && s.complete(p, status) {
		status.CurrentRevision = p.update
	}
	c := conditions.Condition{
		Type: string(v1beta1.UnitedDeploymentUpdated), Status: corev1.ConditionTrue,
		Reason: v1beta1.UnitedDeploymentRevisionUpdated, Message: "updated to revision " + p.update,
	}
	if status.CurrentRevision != p.update {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, v1beta1.UnitedDeploymentRevisionUpdating, "updating to revision "+p.update
	}
	list.Set(c, s.now)
}

// complete reports whether all pods are updated and ready.
func (s *snapshot) complete(p *plan, status *v1beta1.UnitedDeploymentStatus) bool {
	if errors.Join(p.provisionErr, p.updateErr) != nil || len(p.updates) > 0 || s.lags(p) || status.UpdatedReadyReplicas < status.Replicas {
		return false
	}
	for _, t := range p.targets {
		if t.err != nil || t.child == nil || t.child.Revision != p.update {
			return false
		}
	}
	return true
}

// conditionsOf returns a copy of the conditions of a status.
func conditionsOf(status *v1beta1.UnitedDeploymentStatus) conditions.List {
	list := make(conditions.List, len(status.Conditions), len(status.Conditions)+1)
	for i, c := range status.Conditions {
		list[i] = conditions.Condition{
			Type: string(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	return list
}
