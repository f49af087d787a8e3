package cloneset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/scale"
)

// report writes the status, if it changed.
func (r *Reconciler) report(ctx context.Context, s *snapshot, p *plan) error {
	status := p.status(s)
	r.stall(s, p, status)
	changed, err := r.writeStatus(ctx, s, status)
	if changed {
		r.emitInvalid(s, p.invalid, p.unread)
	}
	return err
}

// writeStatus sends one patch. The counters that the schema requires are in it also where they are the same: where nothing is
// stored yet, they are missing.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, status *v1beta1.CloneSetStatus) (changed bool, err error) {
	fresh := s.set.DeepCopy()
	fresh.Status = *status
	patch, err := statuspatch.Merge(s.set, fresh, map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
	}, statuspatch.Unguarded)
	if err != nil || patch == nil {
		return false, err
	}
	if err := r.api.Client.Status().Patch(ctx, s.untyped(), patch); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("write status: %w", err)
	}
	return true, nil
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
	setFailed(status, v1beta1.CloneSetConditionFailedScale, why, s.now)
	changed, err := r.writeStatus(ctx, s, status)
	if changed {
		r.emitInvalid(s, s.invalid, nil)
	}
	return err
}

// untyped is the set to be patched: the answer is not decoded, which may be what no CloneSet can be.
func (s *snapshot) untyped() *unstructured.Unstructured {
	object := stored.Untyped(gvk())
	object.SetNamespace(s.set.Namespace)
	object.SetName(s.set.Name)
	return object
}

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.CloneSetStatus {
	replicas, counts := *s.set.Spec.Replicas, p.pass.Counts()
	status := &v1beta1.CloneSetStatus{
		ObservedGeneration: s.set.Generation, UpdateRevision: p.update, CurrentRevision: p.current,
		Replicas: counts.Pods, ReadyReplicas: counts.Ready, AvailableReplicas: counts.Available,
		UpdatedReplicas: counts.UpdatedPods, UpdatedReadyReplicas: counts.UpdatedReady, UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount: p.resolution.Collisions, Conditions: slices.Clone(s.set.Status.Conditions), LabelSelector: s.selector.String(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	if _, err := scale.Partition(p.rolling.Partition, replicas); err == nil {
		status.ExpectedUpdatedReplicas = replicas - p.limits.Partition
	}
	// Every pod is updated: the next rollout starts from here.
	if status.UpdatedReplicas == status.Replicas && status.Replicas == replicas {
		status.CurrentRevision = status.UpdateRevision
	}
	p.conclude(s, status)
	return status
}

// conclude sets the conditions.
func (p *plan) conclude(s *snapshot, status *v1beta1.CloneSetStatus) {
	setFailed(status, v1beta1.CloneSetConditionFailedScale, p.scaleErr, s.now)
	setFailed(status, v1beta1.CloneSetConditionFailedUpdate, errors.Join(p.updateErr, p.unread), s.now)
	deadline := s.set.Spec.ProgressDeadlineSeconds
	old := conditionOf(&s.set.Status, v1beta1.CloneSetConditionTypeProgressing)
	if deadline == nil || *deadline == math.MaxInt32 {
		remove(status, v1beta1.CloneSetConditionTypeProgressing)
		return
	}
	progress := v1beta1.CloneSetCondition{Type: v1beta1.CloneSetConditionTypeProgressing, Status: corev1.ConditionTrue}
	switch replicas := *s.set.Spec.Replicas; {
	case status.CurrentRevision == status.UpdateRevision && status.Replicas == replicas && status.UpdatedReplicas == replicas && status.UpdatedAvailableReplicas == replicas:
		progress.Reason, progress.Message = "CloneSetAvailable", "CloneSet is available"
	case p.rolling.Paused:
		progress.Reason, progress.Message = "CloneSetPaused", "CloneSet is paused"
	case status.ExpectedUpdatedReplicas < replicas && status.ExpectedUpdatedReplicas <= status.UpdatedAvailableReplicas:
		progress.Reason, progress.Message = "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"
	default:
		p.hurry(s, status, old, &progress)
	}
	put(status, progress, s.now)
}

// The reasons that hurry deals with.
const (
	reasonUpdated  = "CloneSetUpdated"
	reasonExceeded = "ProgressDeadlineExceeded"
)

// hurry is for a rollout under way. Its clock starts when it starts, is resumed, or goes to another revision.
func (p *plan) hurry(s *snapshot, status *v1beta1.CloneSetStatus, old *v1beta1.CloneSetCondition, progress *v1beta1.CloneSetCondition) {
	progress.Reason, progress.Message = reasonUpdated, "CloneSet is progressing"
	deadline := time.Duration(*s.set.Spec.ProgressDeadlineSeconds) * time.Second
	underWay := old != nil && (old.Reason == reasonUpdated || old.Reason == reasonExceeded) && s.set.Status.UpdateRevision == status.UpdateRevision
	if !underWay {
		remove(status, progress.Type) // so that the times are those of now
		p.after.In(deadline)
		return
	}
	rest := old.LastUpdateTime.Add(deadline).Sub(s.now)
	if old.Reason == reasonExceeded || rest < 0 {
		progress.Status, progress.Reason = corev1.ConditionFalse, reasonExceeded
		progress.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", status.UpdateRevision)
		return
	}
	p.after.In(rest + time.Second)
}

// setFailed sets a condition to an error, and removes it without one.
func setFailed(status *v1beta1.CloneSetStatus, t v1beta1.CloneSetConditionType, err error, now time.Time) {
	if err == nil {
		remove(status, t)
		return
	}
	since := metav1.NewTime(now)
	if old := conditionOf(status, t); old != nil {
		if old.Message == err.Error() {
			return
		}
		since = old.LastTransitionTime
	}
	remove(status, t)
	status.Conditions = append(status.Conditions, v1beta1.CloneSetCondition{
		Type: t, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: err.Error(),
	})
}

// put sets a condition unless it says the same already. A changed one moves to the end.
func put(status *v1beta1.CloneSetStatus, c v1beta1.CloneSetCondition, now time.Time) {
	old := conditionOf(status, c.Type)
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return
	}
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	remove(status, c.Type)
	status.Conditions = append(status.Conditions, c)
}

func conditionOf(status *v1beta1.CloneSetStatus, t v1beta1.CloneSetConditionType) *v1beta1.CloneSetCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return &status.Conditions[i]
		}
	}
	return nil
}

func remove(status *v1beta1.CloneSetStatus, t v1beta1.CloneSetConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1beta1.CloneSetCondition) bool { return c.Type == t })
}
