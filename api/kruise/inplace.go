package kruise

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// InPlaceUpdateReady is the readiness gate, and the condition, that takes a pod out of traffic while it is
	// updated in place.
	InPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"
	// InPlaceUpdateReadyReasonStart is the reason of a False InPlaceUpdateReady.
	InPlaceUpdateReadyReasonStart = "StartInPlaceUpdate"
)

// Annotations of a pod that is updated in place.
const (
	// InPlaceUpdateStateKey holds the InPlaceUpdateState of the latest update. It stays after completion.
	InPlaceUpdateStateKey = "apps.kruise.io/inplace-update-state"
	// InPlaceUpdateStateKeyOld is read where InPlaceUpdateStateKey is absent, and never written.
	InPlaceUpdateStateKeyOld = "inplace-update-state"
	// InPlaceUpdateGraceKey holds the InPlaceUpdateGrace that is to be written when the grace period ends.
	InPlaceUpdateGraceKey = "apps.kruise.io/inplace-update-grace"
	// InPlaceUpdateGraceKeyOld is read where InPlaceUpdateGraceKey is absent, and never written.
	InPlaceUpdateGraceKeyOld = "inplace-update-grace"
	// PendingRevisionKey holds, until an update is complete that changes the revision label last, the value that the label
	// gets.
	PendingRevisionKey = "kruisekit.dev/pending-revision"
	// PlannedRestartsKey holds the restarts of the containers that updates explain.
	PlannedRestartsKey = "kruisekit.dev/planned-restarts"
)

// InPlaceUpdateState is the progress of the latest in-place update of a pod.
type InPlaceUpdateState struct {
	// Revision is the value of the pod's revision label that the update goes to.
	Revision string `json:"revision"`
	// UpdateTimestamp is when the update began. Later batches leave it.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses are, by container, what ran when its image was written, or before its image waits for the end
	// of a grace period. Null for a change of no image.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	// UpdateEnvFromMetadata says that the update changes labels or annotations that feed environment variables.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// UpdateResources says that the update changes resources.
	UpdateResources bool `json:"updateResources,omitempty"`
	// UpdateImages says that the update changes images.
	UpdateImages bool `json:"updateImages,omitempty"`
	// NextContainerImages are, by container, the images of later batches.
	NextContainerImages map[string]string `json:"nextContainerImages,omitempty"`
	// NextContainerRefMetadata are, by container, the labels and annotations of later batches.
	NextContainerRefMetadata map[string]metav1.ObjectMeta `json:"nextContainerRefMetadata,omitempty"`
	// NextContainerResources are, by container, the resources of later batches.
	NextContainerResources map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	// PreCheckBeforeNext must hold before the next batch; nil when nothing is left.
	PreCheckBeforeNext *InPlaceUpdatePreCheckBeforeNext `json:"preCheckBeforeNext,omitempty"`
	// ContainerBatchesRecord lists the batches written so far.
	ContainerBatchesRecord []InPlaceUpdateContainerBatch `json:"containerBatchesRecord,omitempty"`
}

// InPlaceUpdateContainerStatus is what ran in a container before its image was changed.
type InPlaceUpdateContainerStatus struct {
	// ImageID as in the container's status.
	ImageID string `json:"imageID,omitempty"`
	// ContainerID as in the container's status. Other writers of the state leave it out, as the fields below.
	ContainerID string `json:"containerID,omitempty"`
	// RestartCount as in the container's status.
	RestartCount int32 `json:"restartCount,omitempty"`
	// Image of the spec that the container was started from.
	Image string `json:"image,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is what must hold before the next batch.
type InPlaceUpdatePreCheckBeforeNext struct {
	// ContainersRequiredReady are the containers of the batch just written.
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is one batch that was written.
type InPlaceUpdateContainerBatch struct {
	// Timestamp of the write.
	Timestamp metav1.Time `json:"timestamp"`
	// Containers of the batch, sorted. Empty when only metadata changed.
	Containers []string `json:"containers"`
}

// InPlaceUpdateGrace is a change of a pod that waits for the end of the grace period.
type InPlaceUpdateGrace struct {
	// Revision is the value of the pod's revision label that the update goes to. If the pod has another by the
	// end of the grace period, the change is dropped.
	Revision string `json:"revision"`
	// ContainerImages are the new images by container.
	ContainerImages map[string]string `json:"containerImages,omitempty"`
	// ContainerRefMetadata are, by container, the labels and annotations that feed its environment variables.
	ContainerRefMetadata map[string]metav1.ObjectMeta `json:"containerRefMetadata,omitempty"`
	// ContainerResources are the changed resources by container.
	ContainerResources map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	// MetaDataPatch is a strategic merge patch of the pod's other metadata.
	MetaDataPatch []byte `json:"metaDataPatch,omitempty"`
	// UpdateEnvFromMetadata says that ContainerRefMetadata has entries.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// GraceSeconds is the grace period, counted from the state's UpdateTimestamp.
	GraceSeconds int32 `json:"graceSeconds,omitempty"`
	// OldTemplate is for planners that apply templates as a whole.
	OldTemplate *corev1.PodTemplateSpec `json:"oldTemplate,omitempty"`
	// NewTemplate is for planners that apply templates as a whole.
	NewTemplate *corev1.PodTemplateSpec `json:"newTemplate,omitempty"`
}
