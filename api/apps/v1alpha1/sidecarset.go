package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// SidecarContainer is v1beta1.SidecarContainer.
	SidecarContainer = v1beta1.SidecarContainer
	// SidecarContainerUpgradeStrategy is v1beta1.SidecarContainerUpgradeStrategy.
	SidecarContainerUpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy
	// SidecarContainerUpgradeType is v1beta1.SidecarContainerUpgradeType.
	SidecarContainerUpgradeType = v1beta1.SidecarContainerUpgradeType
	// PodInjectPolicyType is v1beta1.PodInjectPolicyType.
	PodInjectPolicyType = v1beta1.PodInjectPolicyType
	// ShareVolumePolicy is v1beta1.ShareVolumePolicy.
	ShareVolumePolicy = v1beta1.ShareVolumePolicy
	// ShareVolumePolicyType is v1beta1.ShareVolumePolicyType.
	ShareVolumePolicyType = v1beta1.ShareVolumePolicyType
	// TransferEnvVar is v1beta1.TransferEnvVar.
	TransferEnvVar = v1beta1.TransferEnvVar
	// SourceContainerNameSource is v1beta1.SourceContainerNameSource.
	SourceContainerNameSource = v1beta1.SourceContainerNameSource
	// ResourcesPolicy is v1beta1.ResourcesPolicy.
	ResourcesPolicy = v1beta1.ResourcesPolicy
	// ResourcesExpr is v1beta1.ResourcesExpr.
	ResourcesExpr = v1beta1.ResourcesExpr
	// ResourceExprList is v1beta1.ResourceExprList.
	ResourceExprList = v1beta1.ResourceExprList
	// TargetContainersModeType is v1beta1.TargetContainersModeType.
	TargetContainersModeType = v1beta1.TargetContainersModeType
	// SidecarSetPatchPodMetadata is v1beta1.SidecarSetPatchPodMetadata.
	SidecarSetPatchPodMetadata = v1beta1.SidecarSetPatchPodMetadata
	// SidecarSetPatchPolicyType is v1beta1.SidecarSetPatchPolicyType.
	SidecarSetPatchPolicyType = v1beta1.SidecarSetPatchPolicyType
	// SidecarSetInjectionStrategy is v1beta1.SidecarSetInjectionStrategy.
	SidecarSetInjectionStrategy = v1beta1.SidecarSetInjectionStrategy
	// SidecarSetInjectRevision is v1beta1.SidecarSetInjectRevision.
	SidecarSetInjectRevision = v1beta1.SidecarSetInjectRevision
	// SidecarSetInjectRevisionPolicy is v1beta1.SidecarSetInjectRevisionPolicy.
	SidecarSetInjectRevisionPolicy = v1beta1.SidecarSetInjectRevisionPolicy
	// SidecarSetUpdateStrategy is v1beta1.SidecarSetUpdateStrategy.
	SidecarSetUpdateStrategy = v1beta1.SidecarSetUpdateStrategy
	// SidecarSetUpdateStrategyType is v1beta1.SidecarSetUpdateStrategyType.
	SidecarSetUpdateStrategyType = v1beta1.SidecarSetUpdateStrategyType
	// SidecarSetStatus is v1beta1.SidecarSetStatus.
	SidecarSetStatus = v1beta1.SidecarSetStatus
)

// SidecarSetCustomVersionLabel is the label of the set with the user's name for this revision.
const SidecarSetCustomVersionLabel = v1beta1.SidecarSetCustomVersionLabel

// SidecarSetSpec is what the user wants.
type SidecarSetSpec struct {
	// Selector selects pods. It must not be empty.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Namespace is the one namespace of pods. It goes before NamespaceSelector.
	Namespace string `json:"namespace,omitempty"`
	// NamespaceSelector selects the namespaces of pods. Without it every namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// InitContainers are injected into new pods. They are never updated.
	// +patchMergeKey=name
	// +patchStrategy=merge
	InitContainers []SidecarContainer `json:"initContainers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Containers are injected into new pods. A new image reaches the pods that have them.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Containers []SidecarContainer `json:"containers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Volumes for the containers. A pod gets those that its injected containers mount.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +patchMergeKey=name
	// +patchStrategy=merge
	Volumes []corev1.Volume `json:"volumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// ImagePullSecrets are added to those of new pods.
	// +patchMergeKey=name
	// +patchStrategy=merge
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// InjectionStrategy says what new pods get.
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`
	// UpdateStrategy says how running pods follow a new image.
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of revisions kept, at least 1. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// PatchPodMetadata are annotations for pods, written with an injection and with an update.
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
}

// SidecarSet adds containers to pods when they are created, whatever workload owns them, and later updates the images
// of these containers in place.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,scope=Cluster
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="Pods that have the containers of this set."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedPods",description="Matched pods at the current revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyPods",description="Matched pods that are ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SidecarSetSpec   `json:"spec,omitempty"`
	Status SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does: what the version v1beta1 fills.
func (s *SidecarSet) Default() {
	hub := v1beta1.SidecarSet{}
	sidecarSetUp(s, &hub) // shares the lists
	hub.Default()
	s.Spec.UpdateStrategy = hub.Spec.UpdateStrategy
	s.Spec.RevisionHistoryLimit = hub.Spec.RevisionHistoryLimit
}
