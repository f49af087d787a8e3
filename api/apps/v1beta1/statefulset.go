package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// MaxMinReadySeconds is the largest minReadySeconds that validation accepts, as in OpenKruise.
const MaxMinReadySeconds = 300

// PodUpdateStrategyType says how one pod is brought to a new template.
type PodUpdateStrategyType string

const (
	// RecreatePodUpdateStrategyType deletes the pod and creates it again under its name.
	RecreatePodUpdateStrategyType PodUpdateStrategyType = "ReCreate"
	// InPlaceIfPossiblePodUpdateStrategyType changes the running pod where it can, else recreates it.
	InPlaceIfPossiblePodUpdateStrategyType PodUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyPodUpdateStrategyType changes the running pod and never recreates it.
	InPlaceOnlyPodUpdateStrategyType PodUpdateStrategyType = "InPlaceOnly"
)

// VolumeClaimUpdateStrategyType says when existing claims follow a changed claim template.
type VolumeClaimUpdateStrategyType string

const (
	// OnPodRollingUpdateVolumeClaimUpdateStrategyType expands a claim when the turn of its pod comes.
	OnPodRollingUpdateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
	// OnPVCDeleteVolumeClaimUpdateStrategyType leaves existing claims; new ones follow the template.
	OnPVCDeleteVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnDelete"
)

// PersistentVolumeClaimRetentionPolicyType says what becomes of a claim that is no longer used.
type PersistentVolumeClaimRetentionPolicyType string

const (
	// RetainPersistentVolumeClaimRetentionPolicyType keeps the claim.
	RetainPersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Retain"
	// DeletePersistentVolumeClaimRetentionPolicyType deletes the claim.
	DeletePersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Delete"
)

// Conditions of a StatefulSet.
const (
	// FailedCreatePod is True if the last reconcile could not create or delete pods or their claims.
	FailedCreatePod appsv1.StatefulSetConditionType = "FailedCreatePod"
	// FailedUpdatePod is True if the last reconcile could not update pods or their claims.
	FailedUpdatePod appsv1.StatefulSetConditionType = "FailedUpdatePod"
)

// StatefulSetSpec is what the user wants.
type StatefulSetSpec struct {
	// Replicas is the wanted number of pods. Default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the pods.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
	// VolumeClaimTemplates are claims that each pod gets of its own and finds again when it is recreated.
	// The name of a template is also the name of a volume in the pod.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// VolumeClaimUpdateStrategy says when existing claims follow a changed claim template.
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitempty"`
	// ServiceName names the headless service that gives the pods their DNS names. It cannot be changed.
	ServiceName string `json:"serviceName,omitempty"`
	// PodManagementPolicy is OrderedReady or Parallel. It cannot be changed. Default OrderedReady.
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`
	// UpdateStrategy says how pods follow a new template.
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of old revisions kept besides those in use. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// ReserveOrdinals lists ordinals that pods must not use: numbers, or inclusive ranges such as "3-5". The
	// controller deletes a pod with a reserved ordinal, and creates a pod with the next free ordinal instead.
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`
	// Lifecycle holds pods before deletion, around an in-place update and after creation.
	Lifecycle *kruise.Lifecycle `json:"lifecycle,omitempty"`
	// ScaleStrategy says how the number of pods is changed.
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`
	// PersistentVolumeClaimRetentionPolicy says what becomes of claims that are no longer used. Default Retain.
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`
	// Ordinals says where the ordinals begin.
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`
}

// VolumeClaimUpdateStrategy says when existing claims follow a changed claim template.
type VolumeClaimUpdateStrategy struct {
	// Type is OnPodRollingUpdate or OnDelete. Without it OnDelete.
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// StatefulSetScaleStrategy says how the number of pods is changed.
type StatefulSetScaleStrategy struct {
	// MaxUnavailable limits how many pods may be unavailable while scaling out: a number, or a percentage of
	// replicas rounded down, at least 1. Other than 1 it needs podManagementPolicy Parallel. Without it there
	// is no limit.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy says what becomes of claims that are no longer used.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// WhenDeleted is Retain or Delete, for all claims when the set is deleted. Default Retain.
	WhenDeleted PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// WhenScaled is Retain or Delete, for the claims of a pod whose ordinal is no longer wanted. Default Retain.
	WhenScaled PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals says where the ordinals begin.
type StatefulSetOrdinals struct {
	// Start is the first ordinal. Pods below it are deleted, missing ones created.
	// +optional
	Start int32 `json:"start"`
}

// StatefulSetUpdateStrategy says how pods follow a new template.
type StatefulSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete. Default RollingUpdate.
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate configures the rolling update. It must not be set when type is OnDelete.
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateStatefulSetStrategy limits and orders a rolling update.
type RollingUpdateStatefulSetStrategy struct {
	// Partition is how many pods stay on the current revision: a number of pods, not an ordinal. Default 0.
	Partition *int32 `json:"partition,omitempty"`
	// MaxUnavailable is how many pods may be unavailable while updating: a number, or a percentage of replicas
	// rounded down, at least 1. Other than 1 it needs podManagementPolicy Parallel. Default 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// PodUpdatePolicy is ReCreate, InPlaceIfPossible or InPlaceOnly. The last two need the readiness gate
	// InPlaceUpdateReady in the template. Default ReCreate.
	PodUpdatePolicy PodUpdateStrategyType `json:"podUpdatePolicy,omitempty"`
	// Paused stops updates, and the deletion of pods with the label apps.kruise.io/specified-delete. The
	// controller still creates missing pods and deletes surplus pods.
	Paused bool `json:"paused,omitempty"`
	// UnorderedUpdate, when present, takes pods in another order than from the highest ordinal down. It needs
	// podManagementPolicy Parallel.
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`
	// InPlaceUpdateStrategy tunes in-place updates. A StatefulSet uses only gracePeriodSeconds. The annotations
	// apps.kruise.io/image-predownload-parallelism, apps.kruise.io/image-predownload-timeout-seconds and
	// apps.kruise.io/image-predownload-min-updated-ready-pods configure the image pre-download.
	InPlaceUpdateStrategy *kruise.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
	// MinReadySeconds is how long a pod must be ready to count as available, at most 300. Default 0.
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy selects the pods to update by priority instead of ordinal. Updated pods count first toward
// replicas - partition; outdated pods follow by priority, then from the highest ordinal down.
type UnorderedUpdateStrategy struct {
	// PriorityStrategy says which pods are updated first.
	PriorityStrategy *kruise.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// StatefulSetStatus is what the controller found.
type StatefulSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas counts the pods that exist, those on their way out included.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas counts the pods that run and are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas counts the pods in state Normal that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// CurrentReplicas counts the pods of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`
	// UpdatedReplicas counts the pods of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// UpdatedReadyReplicas counts the ready pods of the update revision.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`
	// UpdatedAvailableReplicas counts the available pods of the update revision.
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`
	// CurrentRevision names the ControllerRevision that pods are updated from.
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision names the ControllerRevision of the template in the spec.
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two templates have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions of the set: FailedCreatePod, FailedUpdatePod.
	Conditions []appsv1.StatefulSetCondition `json:"conditions,omitempty"`
	// LabelSelector is the selector as text, for autoscalers.
	LabelSelector string `json:"labelSelector,omitempty"`
	// VolumeClaims reports for each claim template, in their order, how far the claims have followed it.
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// VolumeClaimStatus reports how far claims have followed their template.
type VolumeClaimStatus struct {
	// VolumeClaimName is the name of the template.
	VolumeClaimName string `json:"volumeClaimName"`
	// CompatibleReplicas counts the claims with the access modes and storage class of the template that request
	// at least its storage.
	CompatibleReplicas int32 `json:"compatibleReplicas"`
	// CompatibleReadyReplicas counts the compatible claims whose capacity has reached their storage request.
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`
}

// StatefulSet runs pods that keep their name, DNS name and claims, and updates them in place where it can.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:categories=kruise,shortName=sts;asts
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The wanted number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="Pods that exist."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="Pods at the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="Ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="Containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="Images of the template."
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StatefulSetSpec   `json:"spec,omitempty"`
	Status StatefulSetStatus `json:"status,omitempty"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The templates are left to the API server.
func (s *StatefulSet) Default() {
	spec := &s.Spec
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	if spec.PodManagementPolicy == "" {
		spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy, StatefulSetPersistentVolumeClaimRetentionPolicy{})
	retention := spec.PersistentVolumeClaimRetentionPolicy
	if retention.WhenDeleted == "" {
		retention.WhenDeleted = RetainPersistentVolumeClaimRetentionPolicyType
	}
	if retention.WhenScaled == "" {
		retention.WhenScaled = RetainPersistentVolumeClaimRetentionPolicyType
	}
	spec.UpdateStrategy.Default()
}

// Default fills what the user left out.
func (u *StatefulSetUpdateStrategy) Default() {
	if u.Type == "" {
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if u.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	setDefault(&u.RollingUpdate, RollingUpdateStatefulSetStrategy{})
	r := u.RollingUpdate
	setDefault(&r.Partition, 0)
	setDefault(&r.MaxUnavailable, intstr.FromInt32(1))
	setDefault(&r.MinReadySeconds, 0)
	if r.PodUpdatePolicy == "" {
		r.PodUpdatePolicy = RecreatePodUpdateStrategyType
	}
}
