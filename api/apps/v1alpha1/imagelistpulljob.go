package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// ImageListPullJobSpec is v1beta1.ImageListPullJobSpec.
	ImageListPullJobSpec = v1beta1.ImageListPullJobSpec
	// ImageListPullJobStatus is v1beta1.ImageListPullJobStatus.
	ImageListPullJobStatus = v1beta1.ImageListPullJobStatus
	// FailedImageStatus is v1beta1.FailedImageStatus.
	FailedImageStatus = v1beta1.FailedImageStatus
)

// ImageListPullJob has several images pulled on a set of nodes. It creates one ImagePullJob for each.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="Images that every node has."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="Images that every node has or gave up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImageListPullJobSpec   `json:"spec,omitempty"`
	Status ImageListPullJobStatus `json:"status,omitempty"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageListPullJob `json:"items"`
}

// Default fills what the user left out, as the admission webhook does.
func (j *ImageListPullJob) Default() { j.Spec.Default() }
