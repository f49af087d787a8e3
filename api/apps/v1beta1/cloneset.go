package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// CloneSetUpdateStrategyType says when pods follow a new template.
type CloneSetUpdateStrategyType string

const (
	// RollingUpdateCloneSetUpdateStrategyType updates pods within the budgets of RollingUpdate.
	RollingUpdateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteCloneSetUpdateStrategyType updates a pod only when it is deleted.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetPodUpdatePolicyType says how one pod is brought to a new template.
type CloneSetPodUpdatePolicyType string

const (
	// RecreateCloneSetPodUpdateStrategyType deletes the pod and creates another.
	RecreateCloneSetPodUpdateStrategyType CloneSetPodUpdatePolicyType = "ReCreate"
	// InPlaceIfPossibleCloneSetPodUpdateStrategyType changes the running pod where it can, else recreates it.
	InPlaceIfPossibleCloneSetPodUpdateStrategyType CloneSetPodUpdatePolicyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetPodUpdateStrategyType changes the running pod and never recreates it.
	InPlaceOnlyCloneSetPodUpdateStrategyType CloneSetPodUpdatePolicyType = "InPlaceOnly"
)

// DefaultCloneSetMaxUnavailable is the budget of a rolling update that names none.
const DefaultCloneSetMaxUnavailable = "20%"

// CloneSetSpec is what the user wants.
type CloneSetSpec struct {
	// Replicas is the wanted number of pods. Default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the pods.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
	// VolumeClaimTemplates are claims that each pod gets of its own. The name of a template is also
	// the name of a volume in the pod. A change reaches new pods only.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// ScaleStrategy says how the number of pods is changed.
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty"`
	// UpdateStrategy says how pods follow a new template.
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of old revisions kept besides those in use. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// MinReadySeconds is how long a pod must be ready to count as available. Default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// Lifecycle holds pods before deletion, around an in-place update and after creation.
	Lifecycle *kruise.Lifecycle `json:"lifecycle,omitempty"`
	// ProgressDeadlineSeconds is how long a rollout may go without progress before the condition
	// Progressing turns False. Without it progress is not watched.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy says how the number of pods is changed.
type CloneSetScaleStrategy struct {
	// PodsToDelete are names of pods to delete first.
	// +optional
	PodsToDelete []string `json:"podsToDelete,omitempty"`
	// MaxUnavailable limits how many new pods may be unavailable while scaling out: a number, or a
	// percentage of replicas rounded up. Without it there is no limit.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// EnablePVCReuse gives a new pod the claims that a vanished pod left behind.
	// +optional
	// +kubebuilder:default=false
	EnablePVCReuse bool `json:"enablePVCReuse"`
	// ExcludePreparingDelete does not count pods in state PreparingDelete as replicas.
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// CloneSetUpdateStrategy says how pods follow a new template.
type CloneSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete. Default RollingUpdate.
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate is how, when type is RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateCloneSetStrategy limits and orders a rolling update.
type RollingUpdateCloneSetStrategy struct {
	// PodUpdatePolicy is ReCreate, InPlaceIfPossible or InPlaceOnly. Default ReCreate.
	PodUpdatePolicy CloneSetPodUpdatePolicyType `json:"podUpdatePolicy,omitempty"`
	// Partition is how many pods stay on older revisions: a number or a percentage of replicas. Default 0.
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// MaxUnavailable is how many pods may be unavailable while updating or deleting named pods: a number,
	// or a percentage of replicas, rounded up, or down when MaxSurge is above 0. Default 20%.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many pods more than replicas there may be while updating or deleting named pods:
	// a number, or a percentage of replicas rounded up. Default 0.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// Paused stops updates; the number of pods is still kept.
	Paused bool `json:"paused,omitempty"`
	// PriorityStrategy says which pods are updated first.
	PriorityStrategy *kruise.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// ScatterStrategy spreads pods with a label over the sequence of updates.
	ScatterStrategy kruise.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
	// InPlaceUpdateStrategy tunes in-place updates.
	InPlaceUpdateStrategy *kruise.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSetStatus is what the controller found.
type CloneSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas counts the active pods.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas counts the pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas counts the pods in state Normal that have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas"`
	// UpdatedReplicas counts the pods of the update revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// UpdatedReadyReplicas counts the ready pods of the update revision.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`
	// UpdatedAvailableReplicas counts the available pods of the update revision.
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`
	// ExpectedUpdatedReplicas is how many pods the partition wants at the update revision.
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas,omitempty"`
	// UpdateRevision names the ControllerRevision of the template in the spec.
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CurrentRevision names the ControllerRevision that pods are updated from.
	CurrentRevision string `json:"currentRevision,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two templates have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions of the set: Progressing, FailedScale, FailedUpdate.
	Conditions []CloneSetCondition `json:"conditions,omitempty"`
	// LabelSelector is the selector as text, for autoscalers.
	LabelSelector string `json:"labelSelector,omitempty"`
}

// CloneSetConditionType names a condition.
type CloneSetConditionType string

const (
	// CloneSetConditionFailedScale is True after an error while scaling.
	CloneSetConditionFailedScale CloneSetConditionType = "FailedScale"
	// CloneSetConditionFailedUpdate is True after an error while updating.
	CloneSetConditionFailedUpdate CloneSetConditionType = "FailedUpdate"
	// CloneSetConditionTypeProgressing reports the progress of a rollout, when a progress deadline is set.
	CloneSetConditionTypeProgressing CloneSetConditionType = "Progressing"
)

// CloneSetCondition is one condition.
type CloneSetCondition struct {
	// Type of the condition.
	Type CloneSetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastUpdateTime is when the condition was last written.
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for machines.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	Message string `json:"message,omitempty"`
}

// CloneSet runs a number of interchangeable pods, and updates them in place where it can.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:categories=kruise,shortName=clone
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The wanted number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="Pods at the update revision."
// +kubebuilder:printcolumn:name="UPDATED_READY",type="integer",JSONPath=".status.updatedReadyReplicas",description="Ready pods at the update revision."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type="integer",JSONPath=".status.updatedAvailableReplicas",description="Available pods at the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="Ready pods."
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.replicas",description="All active pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="Containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="Images of the template."
// +kubebuilder:printcolumn:name="SELECTOR",type="string",priority=1,JSONPath=".status.labelSelector",description="The selector of the pods."
type CloneSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CloneSetSpec   `json:"spec,omitempty"`
	Status CloneSetStatus `json:"status,omitempty"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CloneSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The templates are left to the API server.
func (c *CloneSet) Default() {
	s := &c.Spec
	setDefault(&s.Replicas, 1)
	setDefault(&s.RevisionHistoryLimit, 10)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = RollingUpdateCloneSetUpdateStrategyType
	}
	if s.UpdateStrategy.Type != RollingUpdateCloneSetUpdateStrategyType {
		return
	}
	if s.UpdateStrategy.RollingUpdate == nil {
		s.UpdateStrategy.RollingUpdate = &RollingUpdateCloneSetStrategy{}
	}
	u := s.UpdateStrategy.RollingUpdate
	if u.PodUpdatePolicy == "" {
		u.PodUpdatePolicy = RecreateCloneSetPodUpdateStrategyType
	}
	inPlace := u.PodUpdatePolicy == InPlaceIfPossibleCloneSetPodUpdateStrategyType ||
		u.PodUpdatePolicy == InPlaceOnlyCloneSetPodUpdateStrategyType
	if inPlace && u.InPlaceUpdateStrategy == nil {
		u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{}
	}
	setDefault(&u.Partition, intstr.FromInt32(0))
	setDefault(&u.MaxUnavailable, intstr.FromString(DefaultCloneSetMaxUnavailable))
	setDefault(&u.MaxSurge, intstr.FromInt32(0))
}
