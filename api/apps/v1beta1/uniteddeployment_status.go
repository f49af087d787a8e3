package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnitedDeploymentConditionType names a condition of the object.
type UnitedDeploymentConditionType string

const (
	// SubsetProvisioned is True when every subset has its workload, and none has one too many.
	SubsetProvisioned UnitedDeploymentConditionType = "SubsetProvisioned"
	// SubsetUpdated is True when every workload has been written as the spec wants it.
	SubsetUpdated UnitedDeploymentConditionType = "SubsetUpdated"
	// SubsetFailure is True when a workload reports a failure.
	SubsetFailure UnitedDeploymentConditionType = "SubsetFailure"
	// UnitedDeploymentUpdated is True when the newest revision has been rolled out completely.
	UnitedDeploymentUpdated UnitedDeploymentConditionType = "UnitedDeploymentUpdated"
)

// UnitedDeploymentSubsetConditionType names a condition of a subset.
type UnitedDeploymentSubsetConditionType string

// UnitedDeploymentSubsetSchedulable is False while a subset gets no more pods, because some found no room.
const UnitedDeploymentSubsetSchedulable UnitedDeploymentSubsetConditionType = "Schedulable"

// Reasons of the conditions of the object.
const (
	// UnitedDeploymentRevisionUpdated comes with UnitedDeploymentUpdated True.
	UnitedDeploymentRevisionUpdated = "UnitedDeploymentRevisionUpdated"
	// UnitedDeploymentRevisionUpdating comes with UnitedDeploymentUpdated False.
	UnitedDeploymentRevisionUpdating = "UnitedDeploymentRevisionUpdating"
	// UnitedDeploymentSubsetError goes with SubsetProvisioned and SubsetUpdated False, and SubsetFailure True.
	UnitedDeploymentSubsetError = "Error"
)

// Reasons of the condition Schedulable.
const (
	// SubsetReschedule comes with False when pods found no room, and with True when no reserved pods are left.
	SubsetReschedule = "reschedule"
	// SubsetRecover comes with True when the time without new pods has passed.
	SubsetRecover = "recover"
	// SubsetCreated comes with False when a subset is new, and its first pods must prove themselves.
	SubsetCreated = "created"
)

// UnitedDeploymentStatus is what the controller found.
type UnitedDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas counts the ready pods of all subsets.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Replicas counts the pods of all subsets, less the reserved ones.
	Replicas int32 `json:"replicas"`
	// UpdatedReplicas counts the pods of the updated revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// UpdatedReadyReplicas counts the ready pods of the updated revision.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`
	// ReservedPods counts the reserved pods of all subsets.
	ReservedPods int32 `json:"reservedPods,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two templates have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// CurrentRevision names the ControllerRevision that was last rolled out completely.
	CurrentRevision string `json:"currentRevision"`
	// UpdatedRevision names the ControllerRevision of the template in the spec.
	UpdatedRevision string `json:"updatedRevision,omitempty"`
	// SubsetStatuses reports the same for each subset.
	SubsetStatuses []UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`
	// Conditions of the object: UnitedDeploymentUpdated, SubsetProvisioned, SubsetUpdated, SubsetFailure.
	Conditions []UnitedDeploymentCondition `json:"conditions,omitempty"`
	// LabelSelector is the selector as text, for autoscalers.
	LabelSelector string `json:"labelSelector,omitempty"`
}

// UnitedDeploymentSubsetStatus is what the controller found of one subset.
type UnitedDeploymentSubsetStatus struct {
	// Name of the subset.
	Name string `json:"name,omitempty"`
	// Replicas is how many pods the subset is to have.
	Replicas int32 `json:"replicas,omitempty"`
	// ReadyReplicas counts its ready pods.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Partition is how many of its pods are to stay on older revisions.
	Partition int32 `json:"partition,omitempty"`
	// ReservedPods counts its reserved pods.
	ReservedPods int32 `json:"reservedPods,omitempty"`
	// Conditions of the subset: Schedulable.
	Conditions []UnitedDeploymentSubsetCondition `json:"conditions,omitempty"`
}

// UnitedDeploymentCondition is one condition of the object.
type UnitedDeploymentCondition struct {
	// Type of the condition.
	Type UnitedDeploymentConditionType `json:"type,omitempty"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status,omitempty"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for machines.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	Message string `json:"message,omitempty"`
}

// UnitedDeploymentSubsetCondition is one condition of a subset.
type UnitedDeploymentSubsetCondition struct {
	// Type of the condition.
	Type UnitedDeploymentSubsetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for machines.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	Message string `json:"message,omitempty"`
}
