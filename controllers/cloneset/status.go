package cloneset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// report writes the status, if it changed.
func (r *Reconciler) report(ctx context.Context, s *snapshot, p *plan) error {
	status := p.status(s)
	r.memory.Note(s.key(), func(k *knowledge) { k.wait = p.wait })
	changed, err := r.writeStatus(ctx, s, status)
	if changed {
		r.emitInvalid(s, p.invalid, s.reported)
	}
	return err
}

// writeStatus sends one patch. The counters that the schema requires are in it also where they are the same: where nothing is
// stored yet, they are missing.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, status *v1beta1.CloneSetStatus) (changed bool, err error) {
	fresh := s.set.DeepCopy()
	fresh.Status = *status
	w := statuspatch.Writer{Client: r.api.Client, Kind: stored.Kind{GVK: gvk()}}
	answer, err := w.Write(ctx, s.set, fresh, map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
	})
	if err == nil {
		failures := map[string]string{}
		for _, c := range status.Conditions {
			failures[string(c.Type)] = c.Message
		}
		r.memory.Note(s.key(), func(k *knowledge) { k.failures = failures })
	}
	return answer != nil, err
}

// reject reports a spec that cannot be used at all. Such a set is left as it is until it changes.
func (r *Reconciler) reject(ctx context.Context, s *snapshot) error {
	if err := r.giveUp(ctx, s, s.set.Status.DeepCopy(), s.invalid); err != nil {
		return err
	}
	return reconcile.TerminalError(s.invalid)
}

// giveUp reports why a pass ends before anything is known of the pods.
func (r *Reconciler) giveUp(ctx context.Context, s *snapshot, status *v1beta1.CloneSetStatus, why error) error {
	status.ObservedGeneration = s.set.Generation
	list := conditionsOf(status)
	list.SetError(failedScale, why, s.now)
	storeConditions(status, list)
	changed, err := r.writeStatus(ctx, s, status)
	if changed {
		r.emitInvalid(s, s.invalid, nil)
	}
	return err
}

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.CloneSetStatus {
	replicas, counts := *s.set.Spec.Replicas, p.pass.Counts()
	status := &v1beta1.CloneSetStatus{
		ObservedGeneration: s.set.Generation, UpdateRevision: p.update, CurrentRevision: p.current,
		Replicas: counts.Pods, ReadyReplicas: counts.Ready, AvailableReplicas: counts.Available,
		UpdatedReplicas: counts.UpdatedPods, UpdatedReadyReplicas: counts.UpdatedReady, UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount: p.resolution.Collisions, LabelSelector: s.selector.String(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	if _, err := scale.Partition(p.rolling.Partition, replicas); err == nil {
		status.ExpectedUpdatedReplicas = replicas - p.limits.Partition
	}
	status.CurrentRevision, _ = revision.Promote(revision.Progress{
		Current: p.current, Update: p.update, Replicas: replicas, Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
	list := conditionsOf(&s.set.Status)
	list.SetError(failedScale, p.scaleErr, s.now)
	list.SetError(failedUpdate, errors.Join(p.updateErr, s.reported), s.now)
	p.progress(s, status, &list)
	p.stall(s, status, &list)
	storeConditions(status, list)
	return status
}

// stall reports in the condition Stalled why the set stands still.
func (p *plan) stall(s *snapshot, status *v1beta1.CloneSetStatus, list *conditions.List) {
	var headline note.Note
	if p.runs(s) {
		headline, _ = note.Headline(p.notes())
	}
	p.wait = s.known.wait.Next(headline, s.now)
	p.after.In(conditions.Stall(list, conditions.Stalling{
		Now: s.now, Headline: headline, Wait: p.wait, SameRevision: s.set.Status.UpdateRevision == status.UpdateRevision,
	}))
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
	case status.CurrentRevision == status.UpdateRevision && status.Replicas == replicas && status.UpdatedReplicas == replicas && status.UpdatedAvailableReplicas == replicas:
		c.Reason, c.Message = reasonAvailable, "CloneSet is available"
	case p.rolling.Paused:
		c.Reason, c.Message = reasonPaused, "CloneSet is paused"
	case status.ExpectedUpdatedReplicas < replicas && status.ExpectedUpdatedReplicas <= status.UpdatedAvailableReplicas:
		c.Reason, c.Message = reasonPartition, "CloneSet has been paused due to partition ready"
	default:
		p.checkDeadline(s, status, list, &c)
	}
	list.Set(c, s.now)
}

// checkDeadline is for a rollout under way. Its clock starts when it starts, is resumed, or goes to another revision.
func (p *plan) checkDeadline(s *snapshot, status *v1beta1.CloneSetStatus, list *conditions.List, c *conditions.Condition) {
	c.Reason, c.Message = reasonUpdated, "CloneSet is progressing"
	deadline, old := time.Duration(*s.set.Spec.ProgressDeadlineSeconds)*time.Second, list.Find(progressing)
	underWay := old != nil && (old.Reason == reasonUpdated || old.Reason == reasonExceeded) && s.set.Status.UpdateRevision == status.UpdateRevision
	if !underWay {
		list.Remove(progressing) // so that the times are those of now
		p.after.In(deadline)
		return
	}
	rest := old.LastUpdateTime.Add(deadline).Sub(s.now)
	if old.Reason == reasonExceeded || rest < 0 {
		c.Status, c.Reason = corev1.ConditionFalse, reasonExceeded
		c.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", status.UpdateRevision)
		return
	}
	p.after.In(rest + time.Second)
}

// The types of conditions.
const (
	failedScale  = string(v1beta1.CloneSetConditionFailedScale)
	failedUpdate = string(v1beta1.CloneSetConditionFailedUpdate)
	progressing  = string(v1beta1.CloneSetConditionTypeProgressing)
)

// conditionsOf returns a copy of the conditions of a status.
func conditionsOf(status *v1beta1.CloneSetStatus) conditions.List {
	list := make(conditions.List, len(status.Conditions), len(status.Conditions)+1)
	for i, c := range status.Conditions {
		list[i] = conditions.Condition{
			Type: string(c.Type), Status: c.Status, LastUpdateTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
			Reason: c.Reason, Message: c.Message,
		}
	}
	return list
}

func storeConditions(status *v1beta1.CloneSetStatus, list conditions.List) {
	status.Conditions = nil
	for _, c := range list {
		status.Conditions = append(status.Conditions, v1beta1.CloneSetCondition{
			Type: v1beta1.CloneSetConditionType(c.Type), Status: c.Status, LastUpdateTime: c.LastUpdateTime,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
}
