package cloneset

import (
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/conditions"
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
		CollisionCount:           p.Resolution.Collisions,
		LabelSelector:            s.Selector.String(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	if _, err := scale.Partition(p.rolling.Partition, replicas); err == nil {
		status.ExpectedUpdatedReplicas = replicas - p.limits.Partition
	}
	status.CurrentRevision, _ = revision.Promote(revision.Progress{
		Current: p.Current, Update: p.Update, Replicas: replicas, Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
	list := reporter().Conditions(&s.set.Status)
	list.SetError(failedScale, p.ScaleErr, s.Now)
	list.SetError(failedUpdate, errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.progress(s, status, &list)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	reporter().SetConditions(status, list)
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
func (p *plan) progress(s *snapshot, status *v1beta1.CloneSetStatus, list *conditions.List) {
	deadline := s.set.Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == math.MaxInt32 {
		list.Remove(progressing)
		return
	}
	c := conditions.Condition{Type: progressing, Status: corev1.ConditionTrue}
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
	s *snapshot, status *v1beta1.CloneSetStatus, list *conditions.List, c *conditions.Condition,
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

// reporter reports the status.
func reporter() workloads.Reporter[*v1beta1.CloneSet, v1beta1.CloneSetStatus, v1beta1.CloneSetCondition] {
	type status = v1beta1.CloneSetStatus
	return workloads.Reporter[*v1beta1.CloneSet, status, v1beta1.CloneSetCondition]{
		Status: func(set *v1beta1.CloneSet) *status { return &set.Status },
		Fields: func(s *status) workloads.Fields[v1beta1.CloneSetCondition] {
			return workloads.Fields[v1beta1.CloneSetCondition]{
				ObservedGeneration: &s.ObservedGeneration, CollisionCount: &s.CollisionCount, Conditions: &s.Conditions,
			}
		},
		Required: func(status *status) map[string]any {
			return map[string]any{
				"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
				"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
			}
		},
		Fail: func(list *conditions.List, why error, now time.Time) { list.SetError(failedScale, why, now) },
	}
}
