package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Types that are equal in both versions.
type (
	// ImagePullJobSpec is v1beta1.ImagePullJobSpec.
	ImagePullJobSpec = v1beta1.ImagePullJobSpec
	// ImagePullJobTemplate is v1beta1.ImagePullJobTemplate.
	ImagePullJobTemplate = v1beta1.ImagePullJobTemplate
	// ImagePullJobPodSelector is v1beta1.ImagePullJobPodSelector.
	ImagePullJobPodSelector = v1beta1.ImagePullJobPodSelector
	// ImagePullJobNodeSelector is v1beta1.ImagePullJobNodeSelector.
	ImagePullJobNodeSelector = v1beta1.ImagePullJobNodeSelector
	// ImagePullJobStatus is v1beta1.ImagePullJobStatus.
	ImagePullJobStatus = v1beta1.ImagePullJobStatus
	// ImagePullPolicy is v1beta1.ImagePullPolicy.
	ImagePullPolicy = v1beta1.ImagePullPolicy
	// PullPolicy is v1beta1.PullPolicy.
	PullPolicy = v1beta1.PullPolicy
	// SandboxConfig is v1beta1.SandboxConfig.
	SandboxConfig = v1beta1.SandboxConfig
)

// ImagePullJob pulls one image on a set of nodes.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="Nodes that shall have the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="Nodes that are pulling."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="Nodes that have the image."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="Nodes that gave up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="The progress."
type ImagePullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImagePullJobSpec   `json:"spec,omitempty"`
	Status ImagePullJobStatus `json:"status,omitempty"`
}

// ImagePullJobList is a list of ImagePullJobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImagePullJob `json:"items"`
}

// Default sets defaults, as the admission webhook does.
func (j *ImagePullJob) Default() { j.Spec.Default() }
