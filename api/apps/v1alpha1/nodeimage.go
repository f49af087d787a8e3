package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// ImageTagSpec is v1beta1.ImageTagSpec.
	ImageTagSpec = v1beta1.ImageTagSpec
	// ImageTagPullPolicy is v1beta1.ImageTagPullPolicy.
	ImageTagPullPolicy = v1beta1.ImageTagPullPolicy
	// NodeImageStatus is v1beta1.NodeImageStatus.
	NodeImageStatus = v1beta1.NodeImageStatus
	// ImageStatus is v1beta1.ImageStatus.
	ImageStatus = v1beta1.ImageStatus
	// ImageTagStatus is v1beta1.ImageTagStatus.
	ImageTagStatus = v1beta1.ImageTagStatus
	// ImagePullPhase is v1beta1.ImagePullPhase.
	ImagePullPhase = v1beta1.ImagePullPhase
	// SyncStatus is v1beta1.SyncStatus.
	SyncStatus = v1beta1.SyncStatus
	// SyncStatusPhase is v1beta1.SyncStatusPhase.
	SyncStatusPhase = v1beta1.SyncStatusPhase
)

// NodeImageSpec is what the node shall pull.
type NodeImageSpec struct {
	// Images by their familiar repository name without tag, such as nginx or registry.example.com/team/app;
	// at most 256.
	// +optional
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is one repository.
type ImageSpec struct {
	// PullSecrets are tried one after the other. The daemon must be allowed to read them.
	// +optional
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// Tags to pull, sorted by tag.
	Tags []ImageTagSpec `json:"tags"`
	// SandboxConfig is handed to the container runtime with each pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject refers to a pull secret.
type ReferenceObject struct {
	// Namespace of the secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// NodeImage is the list of images that one node pulls ahead. It has the name and the labels of the node.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,scope=Cluster
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="Tags that the node shall have."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="Tags that the node is pulling."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="Tags that the node has."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="Tags that the node gave up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeImageSpec   `json:"spec,omitempty"`
	Status NodeImageStatus `json:"status,omitempty"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeImage `json:"items"`
}

// Default fills what the user left out, as the admission webhook does, and sorts the tags.
func (n *NodeImage) Default() {
	for _, image := range n.Spec.Images {
		v1beta1.DefaultImageTags(image.Tags)
	}
}
