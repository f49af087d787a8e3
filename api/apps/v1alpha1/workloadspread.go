package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// TargetReference is v1beta1.TargetReference.
	TargetReference = v1beta1.TargetReference
	// TargetFilter is v1beta1.TargetFilter.
	TargetFilter = v1beta1.TargetFilter
	// WorkloadSpreadScheduleStrategy is v1beta1.WorkloadSpreadScheduleStrategy.
	WorkloadSpreadScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy
	// WorkloadSpreadScheduleStrategyType is v1beta1.WorkloadSpreadScheduleStrategyType.
	WorkloadSpreadScheduleStrategyType = v1beta1.WorkloadSpreadScheduleStrategyType
	// AdaptiveWorkloadSpreadStrategy is v1beta1.AdaptiveWorkloadSpreadStrategy.
	AdaptiveWorkloadSpreadStrategy = v1beta1.AdaptiveWorkloadSpreadStrategy
	// WorkloadSpreadSubsetConditionType is v1beta1.WorkloadSpreadSubsetConditionType.
	WorkloadSpreadSubsetConditionType = v1beta1.WorkloadSpreadSubsetConditionType
)

// WorkloadSpreadSpec is what the user wants.
type WorkloadSpreadSpec struct {
	// TargetReference names the workload whose pods are spread. Its group, kind and name cannot be changed.
	TargetReference *TargetReference `json:"targetRef"`
	// TargetFilter narrows the pods of the workload. Without it all.
	TargetFilter *TargetFilter `json:"targetFilter,omitempty"`
	// Subsets are the places for pods, in the order in which they are filled. They are emptied in reverse.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Subsets []WorkloadSpreadSubset `json:"subsets" patchStrategy:"merge" patchMergeKey:"name"`
	// ScheduleStrategy says what happens to pods that find no node.
	ScheduleStrategy WorkloadSpreadScheduleStrategy `json:"scheduleStrategy,omitempty"`
}

// WorkloadSpreadSubset is a place for pods.
type WorkloadSpreadSubset struct {
	// Name of the subset.
	Name string `json:"name"`
	// RequiredNodeSelectorTerm must match the node, besides what the pod requires.
	// +optional
	RequiredNodeSelectorTerm *corev1.NodeSelectorTerm `json:"requiredNodeSelectorTerm,omitempty"`
	// PreferredNodeSelectorTerms are added to what the pod prefers.
	// +optional
	PreferredNodeSelectorTerms []corev1.PreferredSchedulingTerm `json:"preferredNodeSelectorTerms,omitempty"`
	// Tolerations are added to those of the pod.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// MaxReplicas is how many pods the subset takes: a number, or a percentage of the replicas rounded up. Without it
	// there is no limit.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`
	// Patch is a strategic merge patch of the pods.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Patch runtime.RawExtension `json:"patch,omitempty,omitzero"`
}

// WorkloadSpreadStatus is what the controller found, and what admission has promised since.
type WorkloadSpreadStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// SubsetStatuses has an entry for each subset, in the order of the spec, over all versions of pods.
	// +optional
	SubsetStatuses []WorkloadSpreadSubsetStatus `json:"subsetStatuses,omitempty"`
	// VersionedSubsetStatuses has such a list for each version of pods.
	// +optional
	VersionedSubsetStatuses map[string][]WorkloadSpreadSubsetStatus `json:"versionedSubsetStatuses,omitempty"`
}

// WorkloadSpreadSubsetStatus is the state of one subset.
type WorkloadSpreadSubsetStatus struct {
	// Name of the subset.
	Name string `json:"name"`
	// Replicas counts the active pods in the subset.
	Replicas int32 `json:"replicas"`
	// Conditions of the subset: Schedulable.
	// +optional
	Conditions []WorkloadSpreadSubsetCondition `json:"conditions,omitempty"`
	// MissingReplicas is how many more pods the subset takes; -1 where there is no limit.
	MissingReplicas int32 `json:"missingReplicas"`
	// CreatingPods are the pods that were admitted and not seen yet, and when. A pod goes by its name, or where it had
	// none yet by the UID of kruise.MatchedWorkloadSpread.
	// +optional
	CreatingPods map[string]metav1.Time `json:"creatingPods,omitempty"`
	// DeletingPods are the pods whose deletion was admitted and that are not gone yet, and when.
	// +optional
	DeletingPods map[string]metav1.Time `json:"deletingPods,omitempty"`
}

// WorkloadSpreadSubsetCondition is one condition of a subset.
type WorkloadSpreadSubsetCondition struct {
	// Type of the condition.
	Type WorkloadSpreadSubsetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for machines.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	Message string `json:"message,omitempty"`
}

// WorkloadSpread spreads the pods of a workload over places, without owning them: each new pod is given a place
// at admission.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=ws
// +kubebuilder:printcolumn:name="WorkloadName",type="string",JSONPath=".spec.targetRef.name",description="The name of the workload."
// +kubebuilder:printcolumn:name="WorkloadKind",type="string",JSONPath=".spec.targetRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="Adaptive",type="boolean",JSONPath=".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]",description="Whether pods that find no node are moved."
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type WorkloadSpread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkloadSpreadSpec   `json:"spec,omitempty"`
	Status WorkloadSpreadStatus `json:"status,omitempty"`
}

// WorkloadSpreadList is a list of WorkloadSpreads.
//
// +kubebuilder:object:root=true
type WorkloadSpreadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadSpread `json:"items"`
}
