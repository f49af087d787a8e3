package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of a workload that ask for a PersistentPodState of its name. The keys in a value are joined by commas.
const (
	// AnnotationAutoGeneratePersistentPodState asks, with the value "true".
	AnnotationAutoGeneratePersistentPodState = "kruise.io/auto-generate-persistent-pod-state"
	// AnnotationRequiredPersistentTopology holds the keys of spec.requiredPersistentTopology.
	AnnotationRequiredPersistentTopology = "kruise.io/required-persistent-topology"
	// AnnotationPreferredPersistentTopology holds the keys of the one term of spec.preferredPersistentTopology.
	AnnotationPreferredPersistentTopology = "kruise.io/preferred-persistent-topology"
	// AnnotationPersistentPodAnnotations holds the keys of spec.persistentPodAnnotations.
	AnnotationPersistentPodAnnotations = "kruise.io/persistent-pod-annotations"
)

// Annotations of a PersistentPodState that the reference does not have.
const (
	// AnnotationReleaseMissingTopologyAfter is a duration, such as 10m: where no node has had the required labels of a pod
	// for so long, the pod no longer requires these labels. Without the annotation the pod waits for a node. A generated
	// PersistentPodState gets the annotation from its workload.
	AnnotationReleaseMissingTopologyAfter = "kruisekit.dev/release-missing-topology-after"
	// AnnotationRestorePodAnnotations restores recorded annotations on new pods, with the value "true".
	AnnotationRestorePodAnnotations = "kruisekit.dev/restore-pod-annotations"
)

const (
	// PersistentPodStateTopologyAvailable is the type of the condition that is False while no node has the required labels
	// of a pod. A PersistentPodState has the condition from the first missing node on.
	PersistentPodStateTopologyAvailable = "TopologyAvailable"
	// PersistentPodStateNodesMissing is the reason while the condition is False.
	PersistentPodStateNodesMissing = "NodesMissing"
	// PersistentPodStateNodesFound is the reason while the condition is True.
	PersistentPodStateNodesFound = "NodesFound"
)

// GeneratedPersistentPodStateWeight is the weight of the preferred term that is made of an annotation.
const GeneratedPersistentPodStateWeight = 100

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
	// PersistentPodStateRetentionPolicy is WhenScaled or WhenDeleted. Without it WhenScaled.
	// +optional
	PersistentPodStateRetentionPolicy PersistentPodStateRetentionPolicyType `json:"persistentPodStateRetentionPolicy,omitempty"`
}

// PersistentPodStateRetentionPolicyType says when a pod is forgotten.
// +kubebuilder:validation:Enum=WhenScaled;WhenDeleted
type PersistentPodStateRetentionPolicyType string

const (
	// PersistentPodStateRetentionPolicyWhenScaled forgets a pod that the workload no longer has a place for.
	PersistentPodStateRetentionPolicyWhenScaled PersistentPodStateRetentionPolicyType = "WhenScaled"
	// PersistentPodStateRetentionPolicyWhenDeleted forgets pods only with the workload.
	PersistentPodStateRetentionPolicyWhenDeleted PersistentPodStateRetentionPolicyType = "WhenDeleted"
)

// PersistentPodAnnotation is an annotation to remember.
type PersistentPodAnnotation struct {
	// Key of the annotation.
	Key string `json:"key"`
}

// NodeTopologyTerm names labels of nodes.
type NodeTopologyTerm struct {
	// Keys of the labels.
	Keys []string `json:"keys"`
}

// PreferredTopologyTerm names labels of nodes, and how much they count.
type PreferredTopologyTerm struct {
	// Weight of the term; pods take 1 to 100.
	// +kubebuilder:validation:Minimum=0
	Weight int32 `json:"weight"`
	// Preference names the labels.
	Preference NodeTopologyTerm `json:"preference"`
}

// PersistentPodStateStatus is what the controller found.
type PersistentPodStateStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration"`
	// PodStates are the remembered pods by name.
	// +optional
	PodStates map[string]PodState `json:"podStates,omitempty"`
	// Conditions has the condition TopologyAvailable from the first missing node on. The reference has no conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodState is where a pod was when it last became ready.
type PodState struct {
	// NodeName is the node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// NodeTopologyLabels are the labels that the node had, of those that the spec names.
	// +optional
	NodeTopologyLabels map[string]string `json:"nodeTopologyLabels,omitempty"`
	// Annotations are those that the pod had, of those that the spec names.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// MissingSince is since when no node has the required labels of the record. The reference has no such field.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
	// ReleasedAt is when required labels that no node had were dropped from the record. The reference has no such field.
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
}

// PersistentPodState remembers where the pods of a workload became ready, and steers a pod of the same name back there.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
