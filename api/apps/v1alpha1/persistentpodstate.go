package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// PersistentPodAnnotation is v1beta1.PersistentPodAnnotation.
	PersistentPodAnnotation = v1beta1.PersistentPodAnnotation
	// PersistentPodStateStatus is v1beta1.PersistentPodStateStatus.
	PersistentPodStateStatus = v1beta1.PersistentPodStateStatus
	// PodState is v1beta1.PodState.
	PodState = v1beta1.PodState
)

// PersistentPodStateSpec is what the user wants. It needs a required or a preferred topology.
type PersistentPodStateSpec struct {
	// TargetReference names the workload whose pods are remembered. It cannot be changed.
	TargetReference TargetReference `json:"targetRef"`
	// PersistentPodAnnotations are annotations of pods to remember.
	// +optional
	PersistentPodAnnotations []PersistentPodAnnotation `json:"persistentPodAnnotations,omitempty"`
	// RequiredPersistentTopology is what a pod must find again.
	// +optional
	RequiredPersistentTopology *NodeTopologyTerm `json:"requiredPersistentTopology,omitempty"`
	// PreferredPersistentTopology is what a pod should find again.
	// +optional
	PreferredPersistentTopology []PreferredTopologyTerm `json:"preferredPersistentTopology,omitempty"`
	// PersistentPodStateRetentionPolicy is WhenScaled or WhenDeleted. Without it, or with another value, WhenScaled.
	// +optional
	PersistentPodStateRetentionPolicy PersistentPodStateRetentionPolicyType `json:"persistentPodStateRetentionPolicy,omitempty"`
}

// PersistentPodStateRetentionPolicyType says when a pod is forgotten.
type PersistentPodStateRetentionPolicyType string

const (
	// PersistentPodStateRetentionPolicyWhenScaled forgets a pod that the workload no longer has a place for.
	PersistentPodStateRetentionPolicyWhenScaled PersistentPodStateRetentionPolicyType = "WhenScaled"
	// PersistentPodStateRetentionPolicyWhenDeleted forgets pods only with the workload.
	PersistentPodStateRetentionPolicyWhenDeleted PersistentPodStateRetentionPolicyType = "WhenDeleted"
)

// NodeTopologyTerm names labels of nodes.
type NodeTopologyTerm struct {
	// NodeTopologyKeys are the keys of the labels.
	NodeTopologyKeys []string `json:"nodeTopologyKeys"`
}

// PreferredTopologyTerm names labels of nodes, and how much they count.
type PreferredTopologyTerm struct {
	// Weight of the term; pods take 1 to 100.
	Weight int32 `json:"weight"`
	// Preference names the labels.
	Preference NodeTopologyTerm `json:"preference"`
}

// PersistentPodState remembers where the pods of a workload became ready, and steers a pod of the same name back there.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise
type PersistentPodState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PersistentPodStateSpec   `json:"spec,omitempty"`
	Status PersistentPodStateStatus `json:"status,omitempty"`
}

// PersistentPodStateList is a list of PersistentPodStates.
//
// +kubebuilder:object:root=true
type PersistentPodStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PersistentPodState `json:"items"`
}
