package v1beta1

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeImageFakeKey is the label of a NodeImage that stays although no node of its name exists. Tests use it.
const NodeImageFakeKey = "apps.kruise.io/fake-nodeimage"

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

// ReferenceObjectMode says how long a NodeImage refers to a pull secret.
type ReferenceObjectMode string

// ReferenceObjectModeBatch refers to the secret for as long as the image is listed, whether the secret
// exists or not. Any other mode refers to it only while it exists.
const ReferenceObjectModeBatch ReferenceObjectMode = "batch"

// ReferenceObject refers to a pull secret.
type ReferenceObject struct {
	// Namespace of the secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the secret.
	// +optional
	Name string `json:"name,omitempty"`
	// Mode is batch or empty.
	// +optional
	Mode ReferenceObjectMode `json:"mode,omitempty"`
}

// ImageTagSpec is one tag or digest.
type ImageTagSpec struct {
	// Tag is a tag, or a digest such as sha256:0123. It stands once in an image.
	Tag string `json:"tag"`
	// CreatedAt is when the pull was asked for; its deadlines start here. The admission webhook sets it.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// PullPolicy limits the attempts.
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// OwnerReferences are those who asked for the pull. A tag whose owners are all gone is removed; one
	// that never had any stays.
	// +optional
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`
	// Version is raised to have the image pulled once more.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImagePullPolicy is Always or IfNotPresent. Anything else acts like Always.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImageTagPullPolicy limits the attempts to pull one tag.
type ImageTagPullPolicy struct {
	// TimeoutSeconds is how long one attempt may take. Default 600.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// BackoffLimit is how often a failed attempt is repeated. Default 3.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// TTLSecondsAfterFinished is how long the tag stays here after its pull ended. The admission webhook
	// demands it.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// ActiveDeadlineSeconds is how long all attempts together may take. Without it there is no limit.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// NodeImageStatus is what the node did.
type NodeImageStatus struct {
	// Desired counts the tags in the spec.
	Desired int32 `json:"desired"`
	// Succeeded counts the tags that the node has.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed counts the tags that the node gave up.
	// +optional
	Failed int32 `json:"failed"`
	// Pulling counts the tags that the node is pulling.
	// +optional
	Pulling int32 `json:"pulling"`
	// Waiting counts the tags that the node has not begun.
	// +optional
	Waiting int32 `json:"waiting"`
	// ImageStatuses by repository name, as in the spec.
	// +optional
	ImageStatuses map[string]ImageStatus `json:"imageStatuses,omitempty"`
	// FirstSyncStatus is the result of the first pass of the daemon.
	// +optional
	FirstSyncStatus *SyncStatus `json:"firstSyncStatus,omitempty"`
}

// ImageStatus is what the node did about one repository.
type ImageStatus struct {
	// Tags, sorted by tag.
	Tags []ImageTagStatus `json:"tags"`
}

// ImagePullPhase is how far the pull of a tag is.
type ImagePullPhase string

const (
	// ImagePhaseWaiting is a pull that has not begun.
	ImagePhaseWaiting ImagePullPhase = "Waiting"
	// ImagePhasePulling is a pull under way.
	ImagePhasePulling ImagePullPhase = "Pulling"
	// ImagePhaseSucceeded is a pull after which the node has the image.
	ImagePhaseSucceeded ImagePullPhase = "Succeeded"
	// ImagePhaseFailed is a pull that was given up.
	ImagePhaseFailed ImagePullPhase = "Failed"
)

// ImageTagStatus is what the node did about one tag.
type ImageTagStatus struct {
	// Tag as in the spec.
	Tag string `json:"tag"`
	// Phase is Waiting, Pulling, Succeeded or Failed.
	Phase ImagePullPhase `json:"phase"`
	// Progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// StartTime is when the pull began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the pull ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Version of the spec that this status describes.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImageID is the repository name and the id that the container runtime gave the image, joined by @.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Message is why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatusPhase is the outcome of a pass.
type SyncStatusPhase string

const (
	// SyncStatusSucceeded is a pass without error.
	SyncStatusSucceeded SyncStatusPhase = "Succeeded"
	// SyncStatusFailed is a pass with an error.
	SyncStatusFailed SyncStatusPhase = "Failed"
)

// SyncStatus is the result of one pass of the daemon.
type SyncStatus struct {
	// SyncAt is when the pass ended.
	// +optional
	SyncAt metav1.Time `json:"syncAt,omitempty"`
	// Status is Succeeded or Failed.
	// +optional
	Status SyncStatusPhase `json:"status,omitempty"`
	// Message is why the pass failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeImage is the list of images that one node pulls ahead. It has the name and the labels of the node.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
		DefaultImageTags(image.Tags)
	}
}

// DefaultImageTags fills what the user left out of tags, and sorts them. CreatedAt stays empty: it is the
// time of the request, which only the webhook knows.
func DefaultImageTags(tags []ImageTagSpec) {
	for i := range tags {
		setDefault(&tags[i].PullPolicy, ImageTagPullPolicy{})
		setDefault(&tags[i].PullPolicy.TimeoutSeconds, DefaultImagePullTimeoutSeconds)
		setDefault(&tags[i].PullPolicy.BackoffLimit, DefaultImagePullBackoffLimit)
	}
	slices.SortStableFunc(tags, func(a, b ImageTagSpec) int { return cmp.Compare(a.Tag, b.Tag) })
}
