package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WorkloadSpreadIgnorePatchExistingPodsAnnotation keeps, with the value true in any case, the metadata of a subset's
// patch off pods that are older than the WorkloadSpread.
const WorkloadSpreadIgnorePatchExistingPodsAnnotation = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"

// WorkloadSpreadVersionIgnored is the key in status.versionedSubsetStatuses for the pods of a workload whose versions
// are not distinguished.
const WorkloadSpreadVersionIgnored = "versionIgnored"

// TargetReference names a workload in the same namespace.
type TargetReference struct {
	// APIVersion of the workload. Its version is not compared.
	APIVersion string `json:"apiVersion"`
	// Kind of the workload.
	Kind string `json:"kind"`
	// Name of the workload.
	Name string `json:"name"`
}

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

// TargetFilter narrows the pods of a workload.
type TargetFilter struct {
	// Selector selects the pods.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// ReplicasPathList are paths of numbers in the workload, whose sum is the number of those pods. Names and list indices
	// are joined by dots. Without it the number of replicas.
	ReplicasPathList []string `json:"replicasPathList,omitempty"`
}

// WorkloadSpreadSubset is a place for pods.
type WorkloadSpreadSubset struct {
	// Name of the subset.
	Name string `json:"name"`
	// RequiredNodeSelector must match the node, besides what the pod requires.
	// +optional
	RequiredNodeSelector *corev1.NodeSelectorTerm `json:"requiredNodeSelector,omitempty"`
	// PreferredNodeSelector is added to what the pod prefers.
	// +optional
	PreferredNodeSelector []corev1.PreferredSchedulingTerm `json:"preferredNodeSelector,omitempty"`
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

// WorkloadSpreadScheduleStrategyType says what happens to pods that find no node.
// +kubebuilder:validation:Enum=Adaptive;Fixed;""
type WorkloadSpreadScheduleStrategyType string

const (
	// AdaptiveWorkloadSpreadScheduleStrategyType deletes them, so that they come back in another subset.
	AdaptiveWorkloadSpreadScheduleStrategyType WorkloadSpreadScheduleStrategyType = "Adaptive"
	// FixedWorkloadSpreadScheduleStrategyType leaves them waiting.
	FixedWorkloadSpreadScheduleStrategyType WorkloadSpreadScheduleStrategyType = "Fixed"
)

// WorkloadSpreadScheduleStrategy says what happens to pods that find no node.
type WorkloadSpreadScheduleStrategy struct {
	// Type is Adaptive or Fixed. Empty means Fixed.
	// +optional
	Type WorkloadSpreadScheduleStrategyType `json:"type,omitempty"`
	// Adaptive is how, when type is Adaptive.
	// +optional
	Adaptive *AdaptiveWorkloadSpreadStrategy `json:"adaptive,omitempty"`
}

// AdaptiveWorkloadSpreadStrategy tunes the strategy Adaptive.
type AdaptiveWorkloadSpreadStrategy struct {
	// DisableSimulationSchedule has no effect.
	// +optional
	DisableSimulationSchedule bool `json:"disableSimulationSchedule,omitempty"`
	// RescheduleCriticalSeconds is how long a pod may find no node before it is deleted. Without it, or with 0, it
	// is never deleted.
	// +optional
	RescheduleCriticalSeconds *int32 `json:"rescheduleCriticalSeconds,omitempty"`
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
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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

// WorkloadSpreadSubsetConditionType names a condition of a subset.
type WorkloadSpreadSubsetConditionType string

// SubsetSchedulable is False while pods of the subset find no node.
const SubsetSchedulable WorkloadSpreadSubsetConditionType = "Schedulable"

// The reasons of a condition of a subset.
const (
	// SubsetReasonPodUnschedulable is why the subset is not schedulable.
	SubsetReasonPodUnschedulable = "PodUnschedulable"
	// SubsetReasonSufficient is why it is.
	SubsetReasonSufficient = "Sufficient"
	// SubsetReasonUnknown stands for a missing reason, which v1alpha1 allows.
	SubsetReasonUnknown = "Unknown"
)

// WorkloadSpread spreads the pods of a workload over places, without owning them: each new pod is given a place
// at admission.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
