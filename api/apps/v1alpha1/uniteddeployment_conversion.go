package v1alpha1

import (
	"maps"
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with u.
func (u *UnitedDeployment) ConvertTo(hub *v1beta1.UnitedDeployment) error {
	return roundtrip.Up(u, hub, unitedDeploymentUp, unitedDeploymentDown)
}

// ConvertFrom fills u with hub.
func (u *UnitedDeployment) ConvertFrom(hub *v1beta1.UnitedDeployment) error {
	return roundtrip.Down(hub, u, unitedDeploymentUp, unitedDeploymentDown)
}

func unitedDeploymentUp(u *UnitedDeployment, hub *v1beta1.UnitedDeployment) {
	hub.ObjectMeta = u.ObjectMeta
	hub.Annotations = roundtrip.WithKey(u.Annotations, CloneSetTemplateShapeKey, shapeOf(u.Spec.Template.CloneSetTemplate))
	hub.Spec = v1beta1.UnitedDeploymentSpec{
		Replicas: u.Spec.Replicas,
		Selector: u.Spec.Selector,
		Template: v1beta1.SubsetTemplate{
			StatefulSetTemplate:         u.Spec.Template.StatefulSetTemplate,
			AdvancedStatefulSetTemplate: u.Spec.Template.AdvancedStatefulSetTemplate,
			CloneSetTemplate:            cloneSetTemplateUp(u.Spec.Template.CloneSetTemplate),
			DeploymentTemplate:          u.Spec.Template.DeploymentTemplate,
		},
		Topology:             u.Spec.Topology,
		UpdateStrategy:       u.Spec.UpdateStrategy,
		RevisionHistoryLimit: u.Spec.RevisionHistoryLimit,
	}
	hub.Status = v1beta1.UnitedDeploymentStatus{
		ObservedGeneration:   u.Status.ObservedGeneration,
		ReadyReplicas:        u.Status.ReadyReplicas,
		Replicas:             u.Status.Replicas,
		UpdatedReplicas:      u.Status.UpdatedReplicas,
		UpdatedReadyReplicas: u.Status.UpdatedReadyReplicas,
		ReservedPods:         u.Status.ReservedPods,
		CollisionCount:       u.Status.CollisionCount,
		CurrentRevision:      u.Status.CurrentRevision,
		SubsetStatuses:       subsetStatusesUp(&u.Status),
		Conditions:           u.Status.Conditions,
		LabelSelector:        u.Status.LabelSelector,
	}
	if u.Status.UpdateStatus != nil {
		hub.Status.UpdatedRevision = u.Status.UpdateStatus.UpdatedRevision
	}
}

func unitedDeploymentDown(hub *v1beta1.UnitedDeployment, u *UnitedDeployment) {
	u.ObjectMeta = hub.ObjectMeta
	u.Annotations = roundtrip.WithKey(hub.Annotations, CloneSetTemplateShapeKey, "")
	u.Spec = UnitedDeploymentSpec{
		Replicas: hub.Spec.Replicas,
		Selector: hub.Spec.Selector,
		Template: SubsetTemplate{
			StatefulSetTemplate:         hub.Spec.Template.StatefulSetTemplate,
			AdvancedStatefulSetTemplate: hub.Spec.Template.AdvancedStatefulSetTemplate,
			CloneSetTemplate: cloneSetTemplateDown(hub.Spec.Template.CloneSetTemplate,
				hub.Annotations[CloneSetTemplateShapeKey]),
			DeploymentTemplate: hub.Spec.Template.DeploymentTemplate,
		},
		Topology:             hub.Spec.Topology,
		UpdateStrategy:       hub.Spec.UpdateStrategy,
		RevisionHistoryLimit: hub.Spec.RevisionHistoryLimit,
	}
	u.Status = UnitedDeploymentStatus{
		ObservedGeneration:   hub.Status.ObservedGeneration,
		ReadyReplicas:        hub.Status.ReadyReplicas,
		Replicas:             hub.Status.Replicas,
		UpdatedReplicas:      hub.Status.UpdatedReplicas,
		UpdatedReadyReplicas: hub.Status.UpdatedReadyReplicas,
		ReservedPods:         hub.Status.ReservedPods,
		CollisionCount:       hub.Status.CollisionCount,
		CurrentRevision:      hub.Status.CurrentRevision,
		SubsetStatuses:       hub.Status.SubsetStatuses,
		Conditions:           hub.Status.Conditions,
		LabelSelector:        hub.Status.LabelSelector,
	}
	subsets := hub.Status.SubsetStatuses
	u.Status.SubsetReplicas = bySubset(subsets, func(s *UnitedDeploymentSubsetStatus) int32 { return s.Replicas })
	if hub.Status.UpdatedRevision != "" || len(subsets) > 0 {
		u.Status.UpdateStatus = &UpdateStatus{
			UpdatedRevision:   hub.Status.UpdatedRevision,
			CurrentPartitions: bySubset(subsets, func(s *UnitedDeploymentSubsetStatus) int32 { return s.Partition }),
		}
	}
}

// subsetStatusesUp merges the two maps of this version into the list. Of subsets with one name the first counts.
func subsetStatusesUp(s *UnitedDeploymentStatus) []v1beta1.UnitedDeploymentSubsetStatus {
	subsets := slices.Clone(s.SubsetStatuses)
	subset := func(name string) *v1beta1.UnitedDeploymentSubsetStatus {
		for i := range subsets {
			if subsets[i].Name == name {
				return &subsets[i]
			}
		}
		subsets = append(subsets, v1beta1.UnitedDeploymentSubsetStatus{Name: name})
		return &subsets[len(subsets)-1]
	}
	for _, name := range slices.Sorted(maps.Keys(s.SubsetReplicas)) {
		subset(name).Replicas = s.SubsetReplicas[name]
	}
	if s.UpdateStatus == nil {
		return subsets
	}
	for _, name := range slices.Sorted(maps.Keys(s.UpdateStatus.CurrentPartitions)) {
		subset(name).Partition = s.UpdateStatus.CurrentPartitions[name]
	}
	return subsets
}

// bySubset is a number of each subset that has a name; nil when there is none.
func bySubset(
	subsets []v1beta1.UnitedDeploymentSubsetStatus, number func(*UnitedDeploymentSubsetStatus) int32,
) map[string]int32 {
	var numbers map[string]int32
	for i := range subsets {
		s := &subsets[i]
		if _, seen := numbers[s.Name]; seen || s.Name == "" {
			continue
		}
		if numbers == nil {
			numbers = map[string]int32{}
		}
		numbers[s.Name] = number(s)
	}
	return numbers
}
