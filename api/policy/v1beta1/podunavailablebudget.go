package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations of a PodUnavailableBudget in v1alpha1, which are fields in v1beta1.
const (
	// PubProtectOperationAnnotation holds PubOperations, joined by commas.
	PubProtectOperationAnnotation = "kruise.io/pub-protect-operations"
	// PubProtectTotalReplicasAnnotation holds the number of replicas.
	PubProtectTotalReplicasAnnotation = "pub.kruise.io/protect-total-replicas"
)

// PubOperation is something done to a pod that can make it unavailable.
// +kubebuilder:validation:Enum=DELETE;UPDATE;EVICT;RESIZE
type PubOperation string

const (
	// PubDeleteOperation deletes the pod.
	PubDeleteOperation PubOperation = "DELETE"
	// PubUpdateOperation changes the spec of the pod.
	PubUpdateOperation PubOperation = "UPDATE"
	// PubEvictOperation evicts the pod.
	PubEvictOperation PubOperation = "EVICT"
	// PubResizeOperation changes the resources of the pod's containers, and restarts none.
	PubResizeOperation PubOperation = "RESIZE"
)

// PodUnavailableBudgetSpec is what the user wants. It needs one of Selector and TargetReference, and one of
// MaxUnavailable and MinAvailable.
type PodUnavailableBudgetSpec struct {
	// Selector selects the guarded pods. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// TargetReference names the workload whose pods are guarded. It cannot be changed.
	TargetReference *TargetReference `json:"targetRef,omitempty"`
	// MaxUnavailable is how many pods may be unavailable: a number, or a percentage of the replicas rounded up.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable is how many pods must stay available: a number, or a percentage of the replicas rounded up.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// ProtectOperations are the operations that need the budget. Without it DELETE, UPDATE and EVICT; RESIZE too
	// where the installation takes a resize for an update.
	// +optional
	ProtectOperations []PubOperation `json:"protectOperations,omitempty"`
	// ProtectTotalReplicas is the number of replicas that the budget is taken of. Without it, that of the workloads.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProtectTotalReplicas *int32 `json:"protectTotalReplicas,omitempty"`
	// IgnoredPodSelector selects pods that are not guarded.
	// +optional
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
	// PodGroupPolicy has MaxUnavailable and MinAvailable count groups of pods. Without it they count pods.
	// +optional
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`
}

// PodGroupPolicy defines groups of pods that serve together, such as the pods of one replica of a model. A group is
// unavailable while fewer pods than its size are available.
type PodGroupPolicy struct {
	// GroupLabelKey is the label of pods whose value names their group. A pod without the label is a group of its own.
	// +kubebuilder:validation:MinLength=1
	GroupLabelKey string `json:"groupLabelKey"`
	// GroupSize is the number of pods of a group.
	// +kubebuilder:validation:Minimum=1
	GroupSize int32 `json:"groupSize"`
}

// TargetReference names a workload in the same namespace.
type TargetReference struct {
	// APIVersion of the workload. Its version is not compared.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the workload.
	Kind string `json:"kind,omitempty"`
	// Name of the workload.
	Name string `json:"name,omitempty"`
}

// PodUnavailableBudgetStatus is what the controller found, and what admission has spent of it since.
type PodUnavailableBudgetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// DisruptedPods are the pods whose deletion or eviction was admitted, and when. An entry holds until the pod is
	// gone, or for a short time.
	// +optional
	DisruptedPods map[string]metav1.Time `json:"disruptedPods,omitempty"`
	// UnavailablePods are the pods whose update was admitted, and when. An entry holds for a short time.
	// +optional
	UnavailablePods map[string]metav1.Time `json:"unavailablePods,omitempty"`
	// UnavailableAllowed is how many more pods may become unavailable now.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// CurrentAvailable counts the available pods that are in neither map.
	CurrentAvailable int32 `json:"currentAvailable"`
	// DesiredAvailable is how many pods must stay available.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// TotalReplicas is the number of replicas that the budget is taken of; -1 where it is unknown.
	TotalReplicas int32 `json:"totalReplicas"`
	// UnavailablePodGroups are groups that are unavailable, with a podGroupPolicy, sorted; at most 1,000. A further pod of
	// such a group may become unavailable at no cost. The other numbers of the status then count groups.
	// +optional
	UnavailablePodGroups []string `json:"unavailablePodGroups,omitempty"`
}

// PodUnavailableBudget limits how many pods are unavailable at a time through what is done to them on purpose:
// deletion, eviction, update in place and resize.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=pub
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="How many more pods may become unavailable."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="Available pods."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="How many pods must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The replicas that the budget is taken of."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodUnavailableBudgetSpec   `json:"spec,omitempty"`
	Status PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
//
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodUnavailableBudget `json:"items"`
}
