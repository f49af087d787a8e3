package cloneset

import (
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.CloneSetStatus {
	replicas, counts := *s.set.Spec.Replicas, p.Pass.Counts()
	status := &v1beta1.CloneSetStatus{
		ObservedGeneration:       s.set.Generation,
		UpdateRevision:           p.Update,
		CurrentRevision:          p.Current,
		Replicas:                 counts.Pods,
		ReadyReplicas:            counts.Ready,
		AvailableReplicas:        counts.Available,
		UpdatedReplicas:          counts.UpdatedPods,
		UpdatedReadyReplicas:     counts.UpdatedReady,
		UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount:           ptr.To(ptr.Deref(p.Resolution.Collisions, 0)),
		LabelSelector:            s.Selector.String(),
	}
	if _, err := scale.Partition(p.rolling.Partition, replicas); err == nil {
		status.ExpectedUpdatedReplicas = replicas - p.limits.Partition
	}
	status.CurrentRevision, _ = revision.Promote(revision.Progress{
		Current: p.Current, Update: p.Update, Replicas: replicas, Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
	list := workloads.Converted[workloads.Conditions](s.set.Status.Conditions)
	list.SetError(failedScale, p.ScaleErr, s.Now)
	list.SetError(failedUpdate, errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.progress(s, status, &list)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	status.Conditions = workloads.Converted[[]v1beta1.CloneSetCondition](list)
	return status
}

// The reasons of the condition Progressing.
const (
	reasonAvailable = "CloneSetAvailable"
	reasonPaused    = "CloneSetPaused"
	reasonPartition = "ProgressPartitionAvailable"
	reasonUpdated   = "CloneSetUpdated"
	reasonExceeded  = "ProgressDeadlineExceeded"
)

// progress sets the condition Progressing.
func (p *plan) progress(s *snapshot, status *v1beta1.CloneSetStatus, list *workloads.Conditions) {
	deadline := s.set.Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == math.MaxInt32 {
		list.Remove(progressing)
		return
	}
	c := workloads.Condition{Type: progressing, Status: corev1.ConditionTrue}
	switch replicas := *s.set.Spec.Replicas; {
	case status.CurrentRevision == status.UpdateRevision && status.Replicas == replicas &&
		status.UpdatedReplicas == replicas && status.UpdatedAvailableReplicas == replicas:
		c.Reason, c.Message = reasonAvailable, "CloneSet is available"
	case p.rolling.Paused:
		c.Reason, c.Message = reasonPaused, "CloneSet is paused"
	case status.ExpectedUpdatedReplicas < replicas && status.ExpectedUpdatedReplicas <= status.UpdatedAvailableReplicas:
		c.Reason, c.Message = reasonPartition, "CloneSet has been paused due to partition ready"
	default:
		p.checkDeadline(s, status, list, &c)
	}
	list.Set(c, s.Now)
}

// checkDeadline is for a rollout under way. Its clock starts when it starts, is resumed, or goes to another revision.
func (p *plan) checkDeadline(
	s *snapshot, status *v1beta1.CloneSetStatus, list *workloads.Conditions, c *workloads.Condition,
) {
	c.Reason, c.Message = reasonUpdated, "CloneSet is progressing"
	deadline, old := time.Duration(*s.set.Spec.ProgressDeadlineSeconds)*time.Second, list.Find(progressing)
	underWay := old != nil && (old.Reason == reasonUpdated || old.Reason == reasonExceeded) &&
		s.set.Status.UpdateRevision == status.UpdateRevision
	if !underWay {
		list.Remove(progressing) // so that the times are those of now
		p.After.In(deadline)
		return
	}
	rest := old.LastUpdateTime.Add(deadline).Sub(s.Now)
	if old.Reason == reasonExceeded || rest < 0 {
		c.Status, c.Reason = corev1.ConditionFalse, reasonExceeded
		c.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", status.UpdateRevision)
		return
	}
	p.After.In(rest + time.Second)
}

// The types of conditions.
const (
	failedScale  = string(v1beta1.CloneSetConditionFailedScale)
	failedUpdate = string(v1beta1.CloneSetConditionFailedUpdate)
	progressing  = string(v1beta1.CloneSetConditionTypeProgressing)
)

// report reports a status.
func (s *snapshot) report(status *v1beta1.CloneSetStatus) workloads.Report {
	fresh := *s.set
	fresh.Status = *status
	return workloads.Report{Object: &fresh, Required: map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
	}}
}

// failed reports why a pass failed before anything was known of the pods. A spec whose revision is not stored yet is
// not observed: the status still names the revision before.
func (s *snapshot) failed(why error) workloads.Report {
	status := s.set.Status
	if s.Invalid != nil {
		status.ObservedGeneration = s.set.Generation
	}
	status.CollisionCount = workloads.Collisions(status.CollisionCount, why)
	list := workloads.Converted[workloads.Conditions](status.Conditions)
	list.SetError(failedScale, why, s.Now)
	status.Conditions = workloads.Converted[[]v1beta1.CloneSetCondition](list)
	return s.report(&status)
}
