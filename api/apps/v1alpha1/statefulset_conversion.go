package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with s.
func (s *StatefulSet) ConvertTo(hub *v1beta1.StatefulSet) error {
	return roundtrip.Up(s, hub, statefulSetUp, statefulSetDown)
}

// ConvertFrom fills s with hub.
func (s *StatefulSet) ConvertFrom(hub *v1beta1.StatefulSet) error {
	return roundtrip.Down(hub, s, statefulSetUp, statefulSetDown)
}

func statefulSetUp(s *StatefulSet, hub *v1beta1.StatefulSet) {
	hub.ObjectMeta = s.ObjectMeta
	hub.Spec = v1beta1.StatefulSetSpec{
		Replicas:             s.Spec.Replicas,
		Selector:             s.Spec.Selector,
		Template:             s.Spec.Template,
		VolumeClaimTemplates: s.Spec.VolumeClaimTemplates,
		ServiceName:          s.Spec.ServiceName,
		PodManagementPolicy:  s.Spec.PodManagementPolicy,
		UpdateStrategy:       s.Spec.UpdateStrategy,
		RevisionHistoryLimit: s.Spec.RevisionHistoryLimit,
	}
	hub.Status = v1beta1.StatefulSetStatus{
		ObservedGeneration: s.Status.ObservedGeneration,
		Replicas:           s.Status.Replicas,
		ReadyReplicas:      s.Status.ReadyReplicas,
		AvailableReplicas:  s.Status.AvailableReplicas,
		CurrentReplicas:    s.Status.CurrentReplicas,
		UpdatedReplicas:    s.Status.UpdatedReplicas,
		CurrentRevision:    s.Status.CurrentRevision,
		UpdateRevision:     s.Status.UpdateRevision,
		CollisionCount:     s.Status.CollisionCount,
		Conditions:         s.Status.Conditions,
		LabelSelector:      s.Status.LabelSelector,
	}
}

func statefulSetDown(hub *v1beta1.StatefulSet, s *StatefulSet) {
	s.ObjectMeta = hub.ObjectMeta
	s.Spec = StatefulSetSpec{
		Replicas:             hub.Spec.Replicas,
		Selector:             hub.Spec.Selector,
		Template:             hub.Spec.Template,
		VolumeClaimTemplates: hub.Spec.VolumeClaimTemplates,
		ServiceName:          hub.Spec.ServiceName,
		PodManagementPolicy:  hub.Spec.PodManagementPolicy,
		UpdateStrategy:       hub.Spec.UpdateStrategy,
		RevisionHistoryLimit: hub.Spec.RevisionHistoryLimit,
	}
	s.Status = StatefulSetStatus{
		ObservedGeneration: hub.Status.ObservedGeneration,
		Replicas:           hub.Status.Replicas,
		ReadyReplicas:      hub.Status.ReadyReplicas,
		AvailableReplicas:  hub.Status.AvailableReplicas,
		CurrentReplicas:    hub.Status.CurrentReplicas,
		UpdatedReplicas:    hub.Status.UpdatedReplicas,
		CurrentRevision:    hub.Status.CurrentRevision,
		UpdateRevision:     hub.Status.UpdateRevision,
		CollisionCount:     hub.Status.CollisionCount,
		Conditions:         hub.Status.Conditions,
		LabelSelector:      hub.Status.LabelSelector,
	}
}
