package kruise

import corev1 "k8s.io/api/core/v1"

// Environment variables of a container that is to stop once the main containers of its pod have finished.
// Truth is the word true in any case.
const (
	// TerminateSidecarEnvName is true for a container that is stopped.
	TerminateSidecarEnvName = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	// TerminateSidecarWithImageEnvName holds an image that exits at once; it replaces the container's where no
	// daemon can stop the container.
	TerminateSidecarWithImageEnvName = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	// TerminateSidecarIgnoreExitCodeEnvName is true, next to TerminateSidecarEnvName, for a container whose exit code
	// does not decide the phase of the pod.
	TerminateSidecarIgnoreExitCodeEnvName = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
)

const (
	// SidecarTerminated is the condition of a pod whose phase was decided by its main containers alone.
	SidecarTerminated corev1.PodConditionType = "SidecarTerminated"
	// SidecarTerminatedMessage is the message of that condition.
	SidecarTerminatedMessage = "Terminated by Sidecar Terminator"
)
