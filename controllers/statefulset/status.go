package statefulset

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/conditions"
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
		CollisionCount:           p.Resolution.Collisions,
		LabelSelector:            s.Selector.String(),
		VolumeClaims:             s.volumeClaims(),
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
	list := reporter().Conditions(&s.set.Status)
	waits := make([]error, 0, len(p.Waits))
	for _, wait := range p.Waits {
		waits = append(waits, errors.New(wait.Text))
	}
	list.Judge(creation(), errors.Join(append(waits[:min(len(waits), 1)], p.ScaleErr)...), s.Now)
	list.Judge(update(), errors.Join(p.UpdateErr, s.Reported), s.Now)
	p.Stall(&s.Observation, &list, s.set.Status.UpdateRevision == status.UpdateRevision)
	reporter().SetConditions(status, list)
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

func creation() conditions.Verdict {
	return conditions.Verdict{
		Type:      string(v1beta1.FailedCreatePod),
		Failed:    "CreateFailed",
		Succeeded: "PodsCreated",
		Prefix:    "StatefulPodControl failed to create Pod error: ",
	}
}

func update() conditions.Verdict {
	return conditions.Verdict{
		Type:      string(v1beta1.FailedUpdatePod),
		Failed:    "UpdateFailed",
		Succeeded: "PodsUpdated",
		Prefix:    "StatefulPodControl failed to update Pod error: ",
	}
}

// reporter reports the status.
func reporter() workloads.Reporter[*v1beta1.StatefulSet, v1beta1.StatefulSetStatus, appsv1.StatefulSetCondition] {
	type status = v1beta1.StatefulSetStatus
	return workloads.Reporter[*v1beta1.StatefulSet, status, appsv1.StatefulSetCondition]{
		Status: func(set *v1beta1.StatefulSet) *status { return &set.Status },
		Fields: func(s *status) workloads.Fields[appsv1.StatefulSetCondition] {
			return workloads.Fields[appsv1.StatefulSetCondition]{
				ObservedGeneration: &s.ObservedGeneration, CollisionCount: &s.CollisionCount, Conditions: &s.Conditions,
			}
		},
		Required: func(status *status) map[string]any {
			return map[string]any{
				"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
				"currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
			}
		},
		Fail: func(list *conditions.List, why error, now time.Time) { list.Judge(creation(), why, now) },
	}
}
