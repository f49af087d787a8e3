package cloneset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// report writes the status, if it changed.
func (a *act) report(ctx context.Context) error {
	status := a.count()
	a.conclude(status)
	return a.writeStatus(ctx, status)
}

func (a *act) writeStatus(ctx context.Context, status *v1beta1.CloneSetStatus) error {
	if apiequality.Semantic.DeepEqual(status, &a.set.Status) {
		return nil
	}
	patch, err := a.statusPatch(status)
	if err != nil {
		return err
	}
	if err := a.client.Status().Patch(ctx, a.untyped(), patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	a.tellUnfit()
	return nil
}

// statusPatch has the counters in it that the schema requires, also those that are the same: where nothing is stored yet, they
// are lacking.
func (a *act) statusPatch(status *v1beta1.CloneSetStatus) (client.Patch, error) {
	fresh := a.set.DeepCopy()
	fresh.Status = *status
	difference, err := client.MergeFrom(a.set).Data(fresh)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	var patch struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	if patch.Status == nil {
		patch.Status = map[string]any{}
	}
	maps.Copy(patch.Status, map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
	})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// count makes the status of the pods as the last write left them.
func (a *act) count() *v1beta1.CloneSetStatus {
	status := a.set.Status.DeepCopy()
	replicas := *a.set.Spec.Replicas
	*status = v1beta1.CloneSetStatus{
		ObservedGeneration: a.set.Generation, Replicas: int32(len(a.pods)),
		UpdateRevision: a.plan.update, CurrentRevision: a.plan.current,
		CollisionCount: a.plan.revision.Collisions, Conditions: status.Conditions, LabelSelector: a.selector.String(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	for _, pod := range a.pods {
		updated := revision.Match(pod.Labels[pub.PodRevisionLabelKey], a.plan.update)
		available, _ := scale.Available(pod, a.set.Spec.MinReadySeconds, a.now)
		count(updated, &status.UpdatedReplicas, nil)
		count(isReady(pod), &status.ReadyReplicas, when(updated, &status.UpdatedReadyReplicas))
		count(available, &status.AvailableReplicas, when(updated, &status.UpdatedAvailableReplicas))
	}
	if _, err := scale.Partition(a.plan.rolling.Partition, replicas); err == nil {
		status.ExpectedUpdatedReplicas = replicas - a.plan.limits.Partition
	}
	// Every pod is updated: the next rollout starts from here.
	if status.UpdatedReplicas == status.Replicas && status.Replicas == replicas {
		status.CurrentRevision = status.UpdateRevision
	}
	return status
}

func count(is bool, all, updated *int32) {
	if !is {
		return
	}
	*all++
	if updated != nil {
		*updated++
	}
}

func when(is bool, n *int32) *int32 {
	if is {
		return n
	}
	return nil
}

// isReady is ready to serve, whatever its hooks say.
func isReady(pod *corev1.Pod) bool {
	updating := lifecycle.ConditionOf(pod, pub.InPlaceUpdateReady)
	return pod.Status.Phase == corev1.PodRunning && conditionIs(pod, corev1.PodReady) && (updating == nil || updating.Status == corev1.ConditionTrue)
}

// conclude sets the conditions.
func (a *act) conclude(status *v1beta1.CloneSetStatus) {
	a.failed(status, v1beta1.CloneSetConditionFailedScale, a.scaleErr)
	a.failed(status, v1beta1.CloneSetConditionFailedUpdate, errors.Join(a.updateErr, a.plan.unread))
	deadline := a.set.Spec.ProgressDeadlineSeconds
	old := conditionOf(&a.set.Status, v1beta1.CloneSetConditionTypeProgressing)
	if deadline == nil || *deadline == math.MaxInt32 {
		remove(status, v1beta1.CloneSetConditionTypeProgressing)
		return
	}
	progress := v1beta1.CloneSetCondition{Type: v1beta1.CloneSetConditionTypeProgressing, Status: corev1.ConditionTrue}
	switch replicas := *a.set.Spec.Replicas; {
	case status.CurrentRevision == status.UpdateRevision && status.Replicas == replicas && status.UpdatedReplicas == replicas && status.UpdatedAvailableReplicas == replicas:
		progress.Reason, progress.Message = "CloneSetAvailable", "CloneSet is available"
	case a.plan.rolling.Paused:
		progress.Reason, progress.Message = "CloneSetPaused", "CloneSet is paused"
	case status.ExpectedUpdatedReplicas < replicas && status.ExpectedUpdatedReplicas <= status.UpdatedAvailableReplicas:
		progress.Reason, progress.Message = "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"
	default:
		a.hurry(status, old, &progress)
	}
	put(status, progress, a.now)
}

// The reasons that hurry deals with.
const (
	reasonUpdated  = "CloneSetUpdated"
	reasonExceeded = "ProgressDeadlineExceeded"
)

// hurry is for a rollout under way. Its clock starts when it starts, is resumed, or goes to another revision.
func (a *act) hurry(status *v1beta1.CloneSetStatus, old *v1beta1.CloneSetCondition, progress *v1beta1.CloneSetCondition) {
	progress.Reason, progress.Message = reasonUpdated, "CloneSet is progressing"
	deadline := time.Duration(*a.set.Spec.ProgressDeadlineSeconds) * time.Second
	underWay := old != nil && (old.Reason == reasonUpdated || old.Reason == reasonExceeded) && a.set.Status.UpdateRevision == status.UpdateRevision
	if !underWay {
		remove(status, progress.Type) // so that the times are those of now
		a.after = sooner(a.after, deadline)
		return
	}
	rest := old.LastUpdateTime.Add(deadline).Sub(a.now)
	if old.Reason == reasonExceeded || rest < 0 {
		progress.Status, progress.Reason = corev1.ConditionFalse, reasonExceeded
		progress.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", status.UpdateRevision)
		return
	}
	a.after = sooner(a.after, rest+time.Second)
}

// failed tells an error, and takes it back when it is gone.
func (a *act) failed(status *v1beta1.CloneSetStatus, t v1beta1.CloneSetConditionType, err error) {
	if err == nil {
		remove(status, t)
		return
	}
	since := metav1.NewTime(a.now)
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
