package daemonset

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Types of conditions. The reference writes none.
const (
	failedScale  = "FailedScale"
	failedUpdate = "FailedUpdate"
)

// status is the status of the nodes as the last answers left their pods.
func (p *plan) status(s *snapshot) *v1beta1.DaemonSetStatus {
	counts := placement.Count(p.place, p.after())
	status := &v1beta1.DaemonSetStatus{
		CurrentNumberScheduled: counts.Current,
		DesiredNumberScheduled: counts.Desired,
		NumberMisscheduled:     counts.Misscheduled,
		NumberReady:            counts.Ready,
		NumberAvailable:        counts.Available,
		NumberUnavailable:      counts.Desired - counts.Available,
		UpdatedNumberScheduled: counts.Updated,
		ObservedGeneration:     s.set.Generation,
		UpdateRevision:         hashOf(p.Revision()),
		CollisionCount:         p.Resolution.Collisions,
	}
	list := reporter().Conditions(&s.set.Status)
	list.SetError(failedScale, p.ScaleErr, s.Now)
	list.SetError(failedUpdate, errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	reporter().SetConditions(status, list)
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

// reporter reports the status.
func reporter() workloads.Reporter[*v1beta1.DaemonSet, v1beta1.DaemonSetStatus, appsv1.DaemonSetCondition] {
	type status = v1beta1.DaemonSetStatus
	return workloads.Reporter[*v1beta1.DaemonSet, status, appsv1.DaemonSetCondition]{
		Status: func(set *v1beta1.DaemonSet) *status { return &set.Status },
		Fields: func(s *status) workloads.Fields[appsv1.DaemonSetCondition] {
			return workloads.Fields[appsv1.DaemonSetCondition]{
				ObservedGeneration: &s.ObservedGeneration, CollisionCount: &s.CollisionCount, Conditions: &s.Conditions,
			}
		},
		Required: func(status *status) map[string]any {
			return map[string]any{
				"currentNumberScheduled": status.CurrentNumberScheduled,
				"desiredNumberScheduled": status.DesiredNumberScheduled,
				"numberMisscheduled":     status.NumberMisscheduled,
				"numberReady":            status.NumberReady,
				"updatedNumberScheduled": status.UpdatedNumberScheduled,
			}
		},
		Fail: func(list *conditions.List, why error, now time.Time) { list.SetError(failedScale, why, now) },
	}
}
