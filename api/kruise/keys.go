package kruise

// ConversionDataKey is the annotation that keeps, while an object is seen in one version, what only
// another version can hold. It is written and read by conversion alone.
const ConversionDataKey = "kruisekit.dev/conversion-data"

// LifecycleStateKey is the label with a pod's LifecycleState.
const LifecycleStateKey = "lifecycle.apps.kruise.io/state"

// Keys of a CloneSet in v1alpha1, which are fields in v1beta1.
const (
	// CloneSetScalingExcludePreparingDeleteKey is the label that does not count pods in state PreparingDelete.
	CloneSetScalingExcludePreparingDeleteKey = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
	// ImagePreDownloadParallelismKey is the annotation with the number of nodes that pull at once.
	ImagePreDownloadParallelismKey = "apps.kruise.io/image-predownload-parallelism"
	// ImagePreDownloadTimeoutSecondsKey is the annotation with the time that one pull may take.
	ImagePreDownloadTimeoutSecondsKey = "apps.kruise.io/image-predownload-timeout-seconds"
	// ImagePreDownloadMinUpdatedReadyPodsKey is the annotation with the number of updated pods that must
	// be ready before images are pulled ahead.
	ImagePreDownloadMinUpdatedReadyPodsKey = "apps.kruise.io/image-predownload-min-updated-ready-pods"
)
