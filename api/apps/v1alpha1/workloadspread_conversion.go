package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with w.
func (w *WorkloadSpread) ConvertTo(hub *v1beta1.WorkloadSpread) error {
	return roundtrip.Up(w, hub, workloadSpreadUp, workloadSpreadDown)
}

// ConvertFrom fills w with hub.
func (w *WorkloadSpread) ConvertFrom(hub *v1beta1.WorkloadSpread) error {
	return roundtrip.Down(hub, w, workloadSpreadUp, workloadSpreadDown)
}

func workloadSpreadUp(w *WorkloadSpread, hub *v1beta1.WorkloadSpread) {
	hub.ObjectMeta = w.ObjectMeta
	hub.Spec = v1beta1.WorkloadSpreadSpec{
		TargetReference:  w.Spec.TargetReference,
		TargetFilter:     w.Spec.TargetFilter,
		Subsets:          each(w.Spec.Subsets, subsetUp),
		ScheduleStrategy: w.Spec.ScheduleStrategy,
	}
	hub.Status = v1beta1.WorkloadSpreadStatus{
		ObservedGeneration:      w.Status.ObservedGeneration,
		SubsetStatuses:          each(w.Status.SubsetStatuses, subsetStatusUp),
		VersionedSubsetStatuses: eachValue(w.Status.VersionedSubsetStatuses, subsetStatusUp),
	}
}

func workloadSpreadDown(hub *v1beta1.WorkloadSpread, w *WorkloadSpread) {
	w.ObjectMeta = hub.ObjectMeta
	w.Spec = WorkloadSpreadSpec{
		TargetReference:  hub.Spec.TargetReference,
		TargetFilter:     hub.Spec.TargetFilter,
		Subsets:          each(hub.Spec.Subsets, subsetDown),
		ScheduleStrategy: hub.Spec.ScheduleStrategy,
	}
	w.Status = WorkloadSpreadStatus{
		ObservedGeneration:      hub.Status.ObservedGeneration,
		SubsetStatuses:          each(hub.Status.SubsetStatuses, subsetStatusDown),
		VersionedSubsetStatuses: eachValue(hub.Status.VersionedSubsetStatuses, subsetStatusDown),
	}
}

func subsetUp(s WorkloadSpreadSubset) v1beta1.WorkloadSpreadSubset {
	return v1beta1.WorkloadSpreadSubset{
		Name:                  s.Name,
		RequiredNodeSelector:  s.RequiredNodeSelectorTerm,
		PreferredNodeSelector: s.PreferredNodeSelectorTerms,
		Tolerations:           s.Tolerations,
		MaxReplicas:           s.MaxReplicas,
		Patch:                 s.Patch,
	}
}

func subsetDown(hub v1beta1.WorkloadSpreadSubset) WorkloadSpreadSubset {
	return WorkloadSpreadSubset{
		Name:                       hub.Name,
		RequiredNodeSelectorTerm:   hub.RequiredNodeSelector,
		PreferredNodeSelectorTerms: hub.PreferredNodeSelector,
		Tolerations:                hub.Tolerations,
		MaxReplicas:                hub.MaxReplicas,
		Patch:                      hub.Patch,
	}
}

func subsetStatusUp(s WorkloadSpreadSubsetStatus) v1beta1.WorkloadSpreadSubsetStatus {
	return v1beta1.WorkloadSpreadSubsetStatus{
		Name:            s.Name,
		Replicas:        s.Replicas,
		Conditions:      each(s.Conditions, subsetConditionUp),
		MissingReplicas: s.MissingReplicas,
		CreatingPods:    s.CreatingPods,
		DeletingPods:    s.DeletingPods,
	}
}

func subsetStatusDown(hub v1beta1.WorkloadSpreadSubsetStatus) WorkloadSpreadSubsetStatus {
	return WorkloadSpreadSubsetStatus{
		Name:            hub.Name,
		Replicas:        hub.Replicas,
		Conditions:      each(hub.Conditions, subsetConditionDown),
		MissingReplicas: hub.MissingReplicas,
		CreatingPods:    hub.CreatingPods,
		DeletingPods:    hub.DeletingPods,
	}
}

// subsetConditionUp fills the reason, which the hub requires.
func subsetConditionUp(c WorkloadSpreadSubsetCondition) metav1.Condition {
	hub := metav1.Condition{
		Type:               string(c.Type),
		Status:             metav1.ConditionStatus(c.Status),
		LastTransitionTime: c.LastTransitionTime,
		Reason:             c.Reason,
		Message:            c.Message,
	}
	if hub.Reason == "" {
		hub.Reason = v1beta1.SubsetReasonUnknown
	}
	return hub
}

func subsetConditionDown(hub metav1.Condition) WorkloadSpreadSubsetCondition {
	return WorkloadSpreadSubsetCondition{
		Type:               WorkloadSpreadSubsetConditionType(hub.Type),
		Status:             corev1.ConditionStatus(hub.Status),
		LastTransitionTime: hub.LastTransitionTime,
		Reason:             hub.Reason,
		Message:            hub.Message,
	}
}
