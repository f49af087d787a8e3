package daemonset

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/placement"
)

// Types of conditions. The reference writes none.
const (
	failedScale  = "FailedScale"
	failedUpdate = "FailedUpdate"
)

// writeStatus writes a status, if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, w workloads.Status, status *v1beta1.DaemonSetStatus) error {
	fresh := s.set.DeepCopy()
	fresh.Status = *status
	w.Object, w.Conditions = fresh, conditionsOf(status)
	w.Required = map[string]any{
		"currentNumberScheduled": status.CurrentNumberScheduled, "desiredNumberScheduled": status.DesiredNumberScheduled,
		"numberMisscheduled": status.NumberMisscheduled, "numberReady": status.NumberReady, "updatedNumberScheduled": status.UpdatedNumberScheduled,
	}
	return r.kit.WriteStatus(ctx, &s.Observation, w)
}

// giveUp reports why a pass ends before anything is known of the pods.
func (r *Reconciler) giveUp(ctx context.Context, s *snapshot, why error) error {
	status := s.set.Status.DeepCopy()
	status.ObservedGeneration = s.set.Generation
	var taken *history.TakenError
	if errors.As(why, &taken) { // the next pass resolves another name, also beside the history of a built-in DaemonSet of this name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	}
	list := conditionsOf(status)
	list.SetError(failedScale, why, s.Now)
	storeConditions(status, list)
	err := r.writeStatus(ctx, s, workloads.Status{Scaling: s.Invalid}, status)
	if err == nil && s.Invalid != nil {
		return reconcile.TerminalError(why) // only another spec can mend it
	}
	return errors.Join(why, err)
}

// status is the status of the nodes as the last answers left their pods.
func (p *plan) status(s *snapshot) *v1beta1.DaemonSetStatus {
	counts := placement.Count(p.place, p.after())
	status := &v1beta1.DaemonSetStatus{
		CurrentNumberScheduled: counts.Current, DesiredNumberScheduled: counts.Desired, NumberMisscheduled: counts.Misscheduled,
		NumberReady: counts.Ready, NumberAvailable: counts.Available, NumberUnavailable: counts.Desired - counts.Available,
		UpdatedNumberScheduled: counts.Updated, ObservedGeneration: s.set.Generation,
		UpdateRevision: hashOf(p.Revision()), CollisionCount: p.Resolution.Collisions,
	}
	list := conditionsOf(&s.set.Status)
	list.SetError(failedScale, p.ScaleErr, s.Now)
	list.SetError(failedUpdate, errors.Join(p.UpdateErr, s.Reported), s.Now)
	storeConditions(status, list)
	return status
}

// after are the pods of the pass as the last answers left them, by their UID; nil for those that are gone.
func (p *plan) after() map[types.UID]*corev1.Pod {
	after := map[types.UID]*corev1.Pod{}
	for _, i := range p.placed.Instances {
		after[i.Pod.UID] = nil
	}
	for _, pod := range p.Pass.Pods() {
		after[pod.UID] = pod
	}
	return after
}

// conditionsOf returns a copy of the conditions of a status.
func conditionsOf(status *v1beta1.DaemonSetStatus) conditions.List {
	list := make(conditions.List, len(status.Conditions), len(status.Conditions)+1)
	for i, c := range status.Conditions {
		list[i] = conditions.Condition{
			Type: string(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	return list
}

func storeConditions(status *v1beta1.DaemonSetStatus, list conditions.List) {
	status.Conditions = nil
	for _, c := range list {
		status.Conditions = append(status.Conditions, appsv1.DaemonSetCondition{
			Type: appsv1.DaemonSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
}
