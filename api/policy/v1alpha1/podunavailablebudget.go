package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// What is equal in both versions.
type (
	// PodUnavailableBudgetStatus is v1beta1.PodUnavailableBudgetStatus.
	PodUnavailableBudgetStatus = v1beta1.PodUnavailableBudgetStatus
	// PodGroupPolicy is v1beta1.PodGroupPolicy.
	PodGroupPolicy = v1beta1.PodGroupPolicy
	// PubOperation is v1beta1.PubOperation.
	PubOperation = v1beta1.PubOperation
	// TargetReference is v1beta1.TargetReference.
	TargetReference = v1beta1.TargetReference
)

// The operations of v1beta1.
const (
	PubDeleteOperation = v1beta1.PubDeleteOperation
	PubUpdateOperation = v1beta1.PubUpdateOperation
	PubEvictOperation  = v1beta1.PubEvictOperation
	PubResizeOperation = v1beta1.PubResizeOperation
)

// The annotations that are fields in v1beta1.
const (
	PubProtectOperationAnnotation     = v1beta1.PubProtectOperationAnnotation
	PubProtectTotalReplicasAnnotation = v1beta1.PubProtectTotalReplicasAnnotation
)

// PodUnavailableBudgetSpec is what the user wants. It needs one of Selector and TargetReference, and one of
// MaxUnavailable and MinAvailable. The annotations of this package say the rest.
type PodUnavailableBudgetSpec struct {
	// Selector selects the guarded pods. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// TargetReference names the workload whose pods are guarded. It cannot be changed.
	TargetReference *TargetReference `json:"targetRef,omitempty"`
	// MaxUnavailable is how many pods may be unavailable: a number, or a percentage of the replicas rounded up.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable is how many pods must stay available: a number, or a percentage of the replicas rounded up.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// PodGroupPolicy has MaxUnavailable and MinAvailable count groups of pods. Without it they count pods.
	// +optional
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`
}

// PodUnavailableBudget limits how many pods are unavailable at a time through what is done to them on purpose:
// deletion, eviction, update in place and resize.
//
// +genclient
// +kubebuilder:object:root=true
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
