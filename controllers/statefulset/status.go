package statefulset

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
)

// status is the status of the pods as the last answers left them.
func (p *plan) status(s *snapshot) *v1beta1.StatefulSetStatus {
	counts := p.Pass.Counts()
	status := &v1beta1.StatefulSetStatus{
		ObservedGeneration:       s.set.Generation,
		UpdateRevision:           p.Update,
		CurrentRevision:          p.Current,
		Replicas:                 int32(len(s.Active) + len(s.Inactive)),
		ReadyReplicas:            counts.Ready,
		AvailableReplicas:        counts.Available,
		UpdatedReplicas:          counts.UpdatedPods,
		UpdatedReadyReplicas:     counts.UpdatedReady,
		UpdatedAvailableReplicas: counts.UpdatedAvailable,
		CollisionCount:           ptr.To(ptr.Deref(p.Resolution.Collisions, 0)),
		LabelSelector:            s.Selector.String(),
		VolumeClaims:             s.volumeClaims(),
	}
	if p.completes(s, status) {
		status.CurrentRevision = p.Update
	}
	for _, pod := range p.Pass.Pods() {
		if revision.Match(pod.Labels[kruise.PodRevisionLabelKey], status.CurrentRevision) {
			status.CurrentReplicas++
		}
	}
	list := workloads.Converted[workloads.Conditions](s.set.Status.Conditions)
	waits := make([]error, 0, len(p.Waits))
	for _, wait := range p.Waits {
		waits = append(waits, errors.New(wait.Text))
	}
	list.Judge(creation(), errors.Join(append(waits[:min(len(waits), 1)], p.ScaleErr)...), s.Now)
	list.Judge(update(), errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	status.Conditions = workloads.Converted[[]appsv1.StatefulSetCondition](list)
	return status
}

// completes reports whether the update revision becomes the current one: as many pods as wanted exist, no others do,
// and all are updated and ready. Without pods nothing has shown that the revision works, so that a partition goes on to
// hold.
func (p *plan) completes(s *snapshot, status *v1beta1.StatefulSetStatus) bool {
	replicas := int32(len(s.slots()))
	return s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && p.Runs(&s.Observation) &&
		status.Replicas == replicas && status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas &&
		(replicas > 0 || p.limits.Partition == 0)
}

func creation() workloads.Verdict {
	return workloads.Verdict{
		Type:      string(v1beta1.FailedCreatePod),
		Failed:    "CreateFailed",
		Succeeded: "PodsCreated",
		Prefix:    "StatefulPodControl failed to create Pod error: ",
	}
}

func update() workloads.Verdict {
	return workloads.Verdict{
		Type:      string(v1beta1.FailedUpdatePod),
		Failed:    "UpdateFailed",
		Succeeded: "PodsUpdated",
		Prefix:    "StatefulPodControl failed to update Pod error: ",
	}
}

// report reports a status.
func (s *snapshot) report(status *v1beta1.StatefulSetStatus) workloads.Report {
	fresh := *s.set
	fresh.Status = *status
	return workloads.Report{Object: &fresh, Required: map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
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
	list.Judge(creation(), why, s.Now)
	status.Conditions = workloads.Converted[[]appsv1.StatefulSetCondition](list)
	return s.report(&status)
}
