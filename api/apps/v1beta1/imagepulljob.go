package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePullJobFinalizerKey is the finalizer that OpenKruise adds to an ImagePullJob, and admission to one that is
// created in v1alpha1. The controller removes it when the job has ended or is deleted.
const ImagePullJobFinalizerKey = "apps.kruise.io/deletion-protection"

// What a pull job means where it names nothing.
const (
	// DefaultImagePullTimeoutSeconds is how long one attempt may take.
	DefaultImagePullTimeoutSeconds = 600
	// DefaultImagePullBackoffLimit is how often a failed attempt is repeated.
	DefaultImagePullBackoffLimit = 3
)

// DefaultImagePullSecretNamespace is where copies of pull secrets live unless an option of the manager changes it.
const DefaultImagePullSecretNamespace = "kruise-daemon-config"

// Annotations of the copy of a pull secret, which lives in the namespace that the node daemons may read.
const (
	// ImagePullSecretSourceKey holds namespace/name of the secret that was copied.
	ImagePullSecretSourceKey = "imagepulljobs.kruise.io/source-key"
	// ImagePullSecretReferencesKey holds namespace/name of each job that uses the copy, sorted and joined by commas.
	ImagePullSecretReferencesKey = "imagepulljobs.kruise.io/references"
	// ImagePullSecretModeKey holds the ReferenceObjectMode with which NodeImages refer to the copy.
	ImagePullSecretModeKey = "imagepulljobs.kruise.io/mode"
	// ImagePullSecretSourceUIDKey is a label that copies made by old releases carry. It is written no more.
	ImagePullSecretSourceUIDKey = "imagepulljobs.kruise.io/source-uid"
)

// Labels of a ControllerRevision whose images are pulled ahead of a rollout. The value is "true".
const (
	// ImagePreDownloadCreatedKey says that the pull jobs of the revision were created.
	ImagePreDownloadCreatedKey = "apps.kruise.io/pre-predownload-created"
	// ImagePreDownloadIgnoredKey says that nothing is pulled ahead for the revision.
	ImagePreDownloadIgnoredKey = "apps.kruise.io/image-predownload-ignored"
)

// ImagePullPolicy says when a node really pulls.
type ImagePullPolicy string

const (
	// PullAlways pulls in any case.
	PullAlways ImagePullPolicy = "Always"
	// PullIfNotPresent pulls when the node does not have the image.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
)

// ImagePullJobSpec is what the user wants.
type ImagePullJobSpec struct {
	// Image to pull, a reference with a tag or a digest. Without either the tag is latest.
	Image                string `json:"image"`
	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobTemplate is what the jobs for one image and for a list of images have in common.
type ImagePullJobTemplate struct {
	// PullSecrets are names of secrets in the namespace of the job. They cannot be changed in an ImagePullJob.
	// +optional
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Selector picks the nodes. Without it, and without podSelector, all nodes are picked.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`
	// PodSelector picks the nodes where matching pods of the namespace run. It excludes selector.
	// +optional
	PodSelector *ImagePullJobPodSelector `json:"podSelector,omitempty"`
	// Parallelism is how many nodes pull at once, an absolute number. Without it one; 0 pauses the job.
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// PullPolicy limits the attempts on one node.
	// +optional
	PullPolicy *PullPolicy `json:"pullPolicy,omitempty"`
	// CompletionPolicy says when the job ends, and how long it stays.
	CompletionPolicy CompletionPolicy `json:"completionPolicy"`
	// SandboxConfig is handed to the container runtime with the pull, as if a pod with these labels and
	// annotations asked for it.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
	// ImagePullPolicy is Always or IfNotPresent. Default IfNotPresent.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobPodSelector picks pods by their labels.
type ImagePullJobPodSelector struct {
	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobNodeSelector picks nodes either by name or by label; empty, it picks all.
type ImagePullJobNodeSelector struct {
	// Names of nodes, each once.
	// +optional
	Names                []string `json:"names,omitempty"`
	metav1.LabelSelector `json:",inline"`
}

// PullPolicy limits the attempts on one node.
type PullPolicy struct {
	// TimeoutSeconds is how long one attempt may take. Default 600.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// BackoffLimit is how often a failed attempt is repeated. Default 3.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// SandboxConfig is metadata that some container runtimes and registries look at.
type SandboxConfig struct {
	// Labels of the pod sandbox.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod sandbox.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullJobStatus is what the controller found.
type ImagePullJobStatus struct {
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job ended; the controller ignores a job that has ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Desired counts the nodes that the selectors pick.
	Desired int32 `json:"desired"`
	// Active counts the nodes that were asked to pull and have not finished.
	// +optional
	Active int32 `json:"active"`
	// Succeeded counts the nodes that have the image.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed counts the nodes that gave up.
	// +optional
	Failed int32 `json:"failed"`
	// Message reports the progress.
	// +optional
	Message string `json:"message,omitempty"`
	// FailedNodes names the nodes that gave up.
	// +optional
	FailedNodes []string `json:"failedNodes,omitempty"`
}

// ImagePullJob has one image pulled on a set of nodes.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="Nodes that shall have the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="Nodes that are pulling."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="Nodes that have the image."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="Nodes that gave up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
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

// Default fills what the user left out, as the admission webhook does.
func (j *ImagePullJob) Default() { j.Spec.Default() }

// Default fills what the user left out.
func (s *ImagePullJobSpec) Default() {
	defaultPull(&s.ImagePullJobTemplate)
	if s.ImagePullPolicy == "" {
		s.ImagePullPolicy = PullIfNotPresent
	}
}

// defaultPull fills what jobs for one image and for a list of images have in common.
func defaultPull(t *ImagePullJobTemplate) {
	if t.CompletionPolicy.Type == "" {
		t.CompletionPolicy.Type = Always
	}
	if t.PullPolicy == nil {
		t.PullPolicy = &PullPolicy{}
	}
	setDefault(&t.PullPolicy.TimeoutSeconds, DefaultImagePullTimeoutSeconds)
	setDefault(&t.PullPolicy.BackoffLimit, DefaultImagePullBackoffLimit)
}
