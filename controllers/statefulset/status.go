package statefulset

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
)

// writeStatus writes a status, if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, w workloads.Status, status *v1beta1.StatefulSetStatus) error {
	fresh := s.set.DeepCopy()
	fresh.Status = *status
	w.Object, w.Conditions = fresh, conditionsOf(status)
	w.Required = map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
	}
	return r.kit.WriteStatus(ctx, &s.Observation, w)
}

// giveUp reports why a pass ends before anything is known of the pods.
func (r *Reconciler) giveUp(ctx context.Context, s *snapshot, why error) error {
	status := s.set.Status.DeepCopy()
	status.ObservedGeneration = s.set.Generation
	var taken *history.TakenError
	if errors.As(why, &taken) { // the next pass resolves another name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	}
	list := conditionsOf(status)
	list.Judge(creation(), why, s.Now)
	storeConditions(status, list)
	err := r.writeStatus(ctx, s, workloads.Status{Scaling: s.Invalid}, status)
	if err == nil && s.Invalid != nil {
		return reconcile.TerminalError(why) // only another spec can mend it
	}
	return errors.Join(why, err)
}

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.StatefulSetStatus {
	counts := p.Pass.Counts()
	status := &v1beta1.StatefulSetStatus{
		ObservedGeneration: s.set.Generation, UpdateRevision: p.Update, CurrentRevision: p.Current,
		Replicas: int32(len(s.Active) + len(s.Inactive)), ReadyReplicas: counts.Ready, AvailableReplicas: counts.Available,
		UpdatedReplicas: counts.UpdatedPods, UpdatedReadyReplicas: counts.UpdatedReady, UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount: p.Resolution.Collisions, LabelSelector: s.Selector.String(), VolumeClaims: s.volumeClaims(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	if p.completes(s, status) {
		status.CurrentRevision = p.Update
	}
	for _, pod := range p.Pass.Pods() {
		if revision.Match(pod.Labels[kruise.PodRevisionLabelKey], status.CurrentRevision) {
			status.CurrentReplicas++
		}
	}
	list := conditionsOf(&s.set.Status)
	waits := make([]error, 0, len(p.Waits))
	for _, wait := range p.Waits {
		waits = append(waits, errors.New(wait.Text))
	}
	list.Judge(creation(), errors.Join(append(waits[:min(len(waits), 1)], p.ScaleErr)...), s.Now)
	list.Judge(update(), errors.Join(p.UpdateErr, s.Reported), s.Now)
	storeConditions(status, list)
	return status
}

// completes reports whether the update revision becomes the current one: as many pods as wanted exist, no others do, and all are updated
// and ready. Without pods nothing has shown that the revision works, so that a partition goes on to hold.
func (p *plan) completes(s *snapshot, status *v1beta1.StatefulSetStatus) bool {
	replicas := int32(len(s.slots()))
	return s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && p.Runs(&s.Observation) &&
		status.Replicas == replicas && status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas &&
		(replicas > 0 || p.limits.Partition == 0)
}

func creation() conditions.Verdict {
	return conditions.Verdict{
		Type: string(v1beta1.FailedCreatePod), Failed: "CreateFailed", Succeeded: "PodsCreated", Prefix: "StatefulPodControl failed to create Pod error: ",
	}
}

func update() conditions.Verdict {
	return conditions.Verdict{
		Type: string(v1beta1.FailedUpdatePod), Failed: "UpdateFailed", Succeeded: "PodsUpdated", Prefix: "StatefulPodControl failed to update Pod error: ",
	}
}

// conditionsOf returns a copy of the conditions of a status.
func conditionsOf(status *v1beta1.StatefulSetStatus) conditions.List {
	list := make(conditions.List, len(status.Conditions), len(status.Conditions)+1)
	for i, c := range status.Conditions {
		list[i] = conditions.Condition{
			Type: string(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	return list
}

func storeConditions(status *v1beta1.StatefulSetStatus, list conditions.List) {
	status.Conditions = nil
	for _, c := range list {
		status.Conditions = append(status.Conditions, appsv1.StatefulSetCondition{
			Type: appsv1.StatefulSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
}
