package daemonset

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
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
	list := workloads.Converted[workloads.Conditions](s.set.Status.Conditions)
	list.SetError(failedScale, p.ScaleErr, s.Now)
	list.SetError(failedUpdate, errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	status.Conditions = workloads.Converted[[]appsv1.DaemonSetCondition](list)
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

// report reports a status.
func (s *snapshot) report(status *v1beta1.DaemonSetStatus) workloads.Report {
	fresh := *s.set
	fresh.Status = *status
	return workloads.Report{Object: &fresh, Required: map[string]any{
		"currentNumberScheduled": status.CurrentNumberScheduled,
		"desiredNumberScheduled": status.DesiredNumberScheduled,
		"numberMisscheduled":     status.NumberMisscheduled,
		"numberReady":            status.NumberReady,
		"updatedNumberScheduled": status.UpdatedNumberScheduled,
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
	status.Conditions = workloads.Converted[[]appsv1.DaemonSetCondition](list)
	return s.report(&status)
}
