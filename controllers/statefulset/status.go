package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// report writes the status, if it changed.
func (r *Reconciler) report(ctx context.Context, s *snapshot, p *plan) error {
	changed, err := r.writeStatus(ctx, s, p.status(s))
	if changed {
		r.emitInvalid(s, p.invalid, s.reported)
	}
	return err
}

// writeStatus sends one patch. The counters that the schema requires are in it also where they are the same: where nothing is
// stored yet, they are missing.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, status *v1beta1.StatefulSetStatus) (changed bool, err error) {
	fresh := s.set.DeepCopy()
	fresh.Status = *status
	w := statuspatch.Writer{Client: r.api.Client, Kind: stored.Kind{GVK: gvk()}}
	answer, err := w.Write(ctx, s.set, fresh, map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
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
func (r *Reconciler) giveUp(ctx context.Context, s *snapshot, status *v1beta1.StatefulSetStatus, why error) error {
	status.ObservedGeneration = s.set.Generation
	list := conditionsOf(status)
	s.judge(&list, creation(), why)
	storeConditions(status, list)
	changed, err := r.writeStatus(ctx, s, status)
	if changed {
		r.emitInvalid(s, s.invalid, nil)
	}
	return err
}

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.StatefulSetStatus {
	counts := p.pass.Counts()
	status := &v1beta1.StatefulSetStatus{
		ObservedGeneration: s.set.Generation, UpdateRevision: p.update, CurrentRevision: p.current,
		Replicas: int32(len(s.Active) + len(s.Inactive)), ReadyReplicas: counts.Ready, AvailableReplicas: counts.Available,
		UpdatedReplicas: counts.UpdatedPods, UpdatedReadyReplicas: counts.UpdatedReady, UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount: p.resolution.Collisions, LabelSelector: s.selector.String(), VolumeClaims: s.volumeClaims(),
	}
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	if p.completes(s, status) {
		status.CurrentRevision = p.update
	}
	for _, pod := range p.pass.Pods() {
		if revision.Match(pod.Labels[kruise.PodRevisionLabelKey], status.CurrentRevision) {
			status.CurrentReplicas++
		}
	}
	list := conditionsOf(&s.set.Status)
	waits := make([]error, 0, len(p.waits))
	for _, wait := range p.waits {
		waits = append(waits, errors.New(wait.Text))
	}
	s.judge(&list, creation(), errors.Join(append(waits[:min(len(waits), 1)], p.scaleErr)...))
	s.judge(&list, update(), errors.Join(p.updateErr, s.reported))
	storeConditions(status, list)
	return status
}

// completes reports whether the update revision becomes the current one: as many pods as wanted exist, no others do, and all are updated
// and ready. Without pods nothing has shown that the revision works, so that a partition goes on to hold.
func (p *plan) completes(s *snapshot, status *v1beta1.StatefulSetStatus) bool {
	replicas := int32(len(s.slots()))
	return s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && p.runs(s) &&
		status.Replicas == replicas && status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas &&
		(replicas > 0 || p.limits.Partition == 0)
}

// verdict is a condition about one sort of write.
type verdict struct{ conditionType, verb, failed, succeeded string }

func creation() verdict {
	return verdict{string(v1beta1.FailedCreatePod), "create", "CreateFailed", "PodsCreated"}
}

func update() verdict {
	return verdict{string(v1beta1.FailedUpdatePod), "update", "UpdateFailed", "PodsUpdated"}
}

// judge sets a condition to True with an error. Without one a condition that exists becomes False, and none is added.
func (s *snapshot) judge(list *conditions.List, v verdict, err error) {
	old := list.Find(v.conditionType)
	if err == nil {
		if old != nil {
			list.Set(conditions.Condition{Type: v.conditionType, Status: corev1.ConditionFalse, Reason: v.succeeded}, s.now)
		}
		return
	}
	if old != nil && old.Status != corev1.ConditionTrue {
		list.Remove(v.conditionType) // the transition is now
	}
	list.SetError(v.conditionType, fmt.Errorf("StatefulPodControl failed to %s Pod error: %w", v.verb, err), s.now)
	list.Find(v.conditionType).Reason = v.failed
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
