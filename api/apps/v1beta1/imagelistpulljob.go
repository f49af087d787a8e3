package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageListPullJobSpec is what the user wants.
type ImageListPullJobSpec struct {
	// Images to pull: 1 to 255 different references.
	Images               []string `json:"images"`
	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus is what the controller found.
type ImageListPullJobStatus struct {
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job ended; the controller ignores a job that has ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Desired counts the images.
	Desired int32 `json:"desired"`
	// Active counts the images that are being pulled on some node.
	// +optional
	Active int32 `json:"active"`
	// Completed counts the images that every node has or gave up.
	// +optional
	Completed int32 `json:"completed"`
	// Succeeded counts the images that every node has.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// FailedImageStatuses names the images that some node gave up.
	// +optional
	FailedImageStatuses []*FailedImageStatus `json:"failedImageStatuses,omitempty"`
}

// FailedImageStatus is one image that some node gave up.
type FailedImageStatus struct {
	// ImagePullJob names the job of the image.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// Name is the image as it stands in the spec.
	// +optional
	Name string `json:"name,omitempty"`
	// Message is where to look.
	// +optional
	Message string `json:"message,omitempty"`
}

// ImageListPullJob has several images pulled on a set of nodes. It creates one ImagePullJob for each.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

// Default fills what the user left out. ImagePullPolicy stays empty: the jobs of the images fill it.
func (s *ImageListPullJobSpec) Default() { defaultPull(&s.ImagePullJobTemplate) }
