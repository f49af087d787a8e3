package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// What is equal in both versions.
type (
	// UpdateStrategyType is v1beta1.UpdateStrategyType.
	UpdateStrategyType = v1beta1.UpdateStrategyType
	// StatefulSetTemplateSpec is v1beta1.StatefulSetTemplateSpec.
	StatefulSetTemplateSpec = v1beta1.StatefulSetTemplateSpec
	// AdvancedStatefulSetTemplateSpec is v1beta1.AdvancedStatefulSetTemplateSpec.
	AdvancedStatefulSetTemplateSpec = v1beta1.AdvancedStatefulSetTemplateSpec
	// DeploymentTemplateSpec is v1beta1.DeploymentTemplateSpec.
	DeploymentTemplateSpec = v1beta1.DeploymentTemplateSpec
	// UnitedDeploymentUpdateStrategy is v1beta1.UnitedDeploymentUpdateStrategy.
	UnitedDeploymentUpdateStrategy = v1beta1.UnitedDeploymentUpdateStrategy
	// ManualUpdate is v1beta1.ManualUpdate.
	ManualUpdate = v1beta1.ManualUpdate
	// Topology is v1beta1.Topology.
	Topology = v1beta1.Topology
	// Subset is v1beta1.Subset.
	Subset = v1beta1.Subset
	// UnitedDeploymentScheduleStrategy is v1beta1.UnitedDeploymentScheduleStrategy.
	UnitedDeploymentScheduleStrategy = v1beta1.UnitedDeploymentScheduleStrategy
	// UnitedDeploymentScheduleStrategyType is v1beta1.UnitedDeploymentScheduleStrategyType.
	UnitedDeploymentScheduleStrategyType = v1beta1.UnitedDeploymentScheduleStrategyType
	// AdaptiveUnitedDeploymentStrategy is v1beta1.AdaptiveUnitedDeploymentStrategy.
	AdaptiveUnitedDeploymentStrategy = v1beta1.AdaptiveUnitedDeploymentStrategy
	// UnitedDeploymentCondition is v1beta1.UnitedDeploymentCondition.
	UnitedDeploymentCondition = v1beta1.UnitedDeploymentCondition
	// UnitedDeploymentConditionType is v1beta1.UnitedDeploymentConditionType.
	UnitedDeploymentConditionType = v1beta1.UnitedDeploymentConditionType
	// UnitedDeploymentSubsetStatus is v1beta1.UnitedDeploymentSubsetStatus.
	UnitedDeploymentSubsetStatus = v1beta1.UnitedDeploymentSubsetStatus
	// UnitedDeploymentSubsetCondition is v1beta1.UnitedDeploymentSubsetCondition.
	UnitedDeploymentSubsetCondition = v1beta1.UnitedDeploymentSubsetCondition
	// UnitedDeploymentSubsetConditionType is v1beta1.UnitedDeploymentSubsetConditionType.
	UnitedDeploymentSubsetConditionType = v1beta1.UnitedDeploymentSubsetConditionType
)

const (
	// ManualUpdateStrategyType is v1beta1.ManualUpdateStrategyType.
	ManualUpdateStrategyType = v1beta1.ManualUpdateStrategyType
	// AdaptiveUnitedDeploymentScheduleStrategyType is v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType.
	AdaptiveUnitedDeploymentScheduleStrategyType = v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
	// FixedUnitedDeploymentScheduleStrategyType is v1beta1.FixedUnitedDeploymentScheduleStrategyType.
	FixedUnitedDeploymentScheduleStrategyType = v1beta1.FixedUnitedDeploymentScheduleStrategyType
	// SubsetProvisioned is v1beta1.SubsetProvisioned.
	SubsetProvisioned = v1beta1.SubsetProvisioned
	// SubsetUpdated is v1beta1.SubsetUpdated.
	SubsetUpdated = v1beta1.SubsetUpdated
	// SubsetFailure is v1beta1.SubsetFailure.
	SubsetFailure = v1beta1.SubsetFailure
	// UnitedDeploymentUpdated is v1beta1.UnitedDeploymentUpdated.
	UnitedDeploymentUpdated = v1beta1.UnitedDeploymentUpdated
	// UnitedDeploymentSubsetSchedulable is v1beta1.UnitedDeploymentSubsetSchedulable.
	UnitedDeploymentSubsetSchedulable = v1beta1.UnitedDeploymentSubsetSchedulable
)

// CloneSetTemplateShapeKey is the annotation of a UnitedDeployment, seen in v1beta1, whose template of a CloneSet
// was written in the shape of v1alpha1. It makes the object come back in that shape, edits included.
const CloneSetTemplateShapeKey = "kruisekit.dev/cloneset-template-shape"

// UnitedDeploymentSpec is what the user wants.
type UnitedDeploymentSpec struct {
	// Replicas is the wanted number of pods in all subsets together. Default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template, both of the workload and of its pods.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the workloads, one for each subset.
	Template SubsetTemplate `json:"template,omitempty"`
	// Topology says which subsets there are, and how the replicas are divided among them.
	Topology Topology `json:"topology,omitempty"`
	// UpdateStrategy says how a new template reaches the subsets.
	UpdateStrategy UnitedDeploymentUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of revisions kept. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// SubsetTemplate is the template of the workloads. Exactly one of its members is set.
type SubsetTemplate struct {
	// StatefulSetTemplate makes a built-in StatefulSet of each subset.
	StatefulSetTemplate *StatefulSetTemplateSpec `json:"statefulSetTemplate,omitempty"`
	// AdvancedStatefulSetTemplate makes a StatefulSet of this group of each subset.
	AdvancedStatefulSetTemplate *AdvancedStatefulSetTemplateSpec `json:"advancedStatefulSetTemplate,omitempty"`
	// CloneSetTemplate makes a CloneSet of each subset.
	CloneSetTemplate *CloneSetTemplateSpec `json:"cloneSetTemplate,omitempty"`
	// DeploymentTemplate makes a built-in Deployment of each subset.
	DeploymentTemplate *DeploymentTemplateSpec `json:"deploymentTemplate,omitempty"`
}

// CloneSetTemplateSpec is the template of a CloneSet.
type CloneSetTemplateSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec without replicas and partition, which come from the topology and the update strategy.
	Spec SubsetCloneSetSpec `json:"spec"`
}

// SubsetCloneSetSpec is the spec of a CloneSet in the shape of v1beta1, or in that of this version: older releases
// took the latter. The two strategies differ, and UpdateStrategy identifies the shape.
type SubsetCloneSetSpec struct {
	// Replicas comes from the topology, and stays unset.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template.
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
	ScaleStrategy SubsetCloneSetScaleStrategy `json:"scaleStrategy,omitempty"`
	// UpdateStrategy says how pods follow a new template. It has the shape of v1alpha1 when type is ReCreate,
	// InPlaceIfPossible or InPlaceOnly, or when settings are given with a type other than RollingUpdate and there
	// is no rollingUpdate. The settings of the other shape have no effect.
	UpdateStrategy SubsetCloneSetUpdateStrategy `json:"updateStrategy,omitempty"`
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

// SubsetCloneSetScaleStrategy is a CloneSetScaleStrategy of both versions. Which of the two fields about claims
// counts is a matter of the shape.
type SubsetCloneSetScaleStrategy struct {
	CloneSetScaleStrategy `json:",inline"`
	// EnablePVCReuse gives a new pod the claims that a vanished pod left behind. In the shape of v1alpha1 it
	// has no effect: there claims are reused unless disablePVCReuse says no.
	// +optional
	// +kubebuilder:default=false
	EnablePVCReuse bool `json:"enablePVCReuse,omitempty"`
	// ExcludePreparingDelete does not count pods in state PreparingDelete as replicas.
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// SubsetCloneSetUpdateStrategy is a CloneSetUpdateStrategy of both versions.
type SubsetCloneSetUpdateStrategy struct {
	CloneSetUpdateStrategy `json:",inline"`
	// RollingUpdate is how, when type is RollingUpdate.
	RollingUpdate *v1beta1.RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`
}

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
	// SubsetStatuses reports the same for each subset.
	SubsetStatuses []UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`
	// SubsetReplicas is by subset how many pods it is to have.
	SubsetReplicas map[string]int32 `json:"subsetReplicas,omitempty"`
	// Conditions of the object: UnitedDeploymentUpdated, SubsetProvisioned, SubsetUpdated, SubsetFailure.
	Conditions []UnitedDeploymentCondition `json:"conditions,omitempty"`
	// UpdateStatus reports the progress of the update.
	UpdateStatus *UpdateStatus `json:"updateStatus,omitempty"`
	// LabelSelector is the selector as text, for autoscalers.
	LabelSelector string `json:"labelSelector,omitempty"`
}

// UpdateStatus reports the progress of the update.
type UpdateStatus struct {
	// UpdatedRevision names the ControllerRevision of the template in the spec.
	UpdatedRevision string `json:"updatedRevision,omitempty"`
	// CurrentPartitions is by subset how many of its pods are to stay on older revisions.
	CurrentPartitions map[string]int32 `json:"currentPartitions,omitempty"`
}

// UnitedDeployment runs one workload in each of several domains, and divides its replicas among them.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:categories=kruise,shortName=ud
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The wanted number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="Pods of all subsets."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="Pods at the updated revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="Ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UnitedDeploymentSpec   `json:"spec,omitempty"`
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UnitedDeployment `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The templates are left to the API server.
func (u *UnitedDeployment) Default() {
	setDefault(&u.Spec.Replicas, 1)
	setDefault(&u.Spec.RevisionHistoryLimit, 10)
	u.Spec.UpdateStrategy.Default()
	u.Spec.Topology.Default()
}
