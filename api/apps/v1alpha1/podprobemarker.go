package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarkerFinalizerKey is the finalizer that keeps a PodProbeMarker until no node runs its probes.
const PodProbeMarkerFinalizerKey = "kruise.io/node-pod-probe-cleanup"

// PodProbeMarkerSpec is what the user wants.
type PodProbeMarkerSpec struct {
	// Selector of pods of the same namespace. It cannot be empty, and cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// Probes to run in each of the pods, at least one.
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe, and what follows from its outcome.
type PodContainerProbe struct {
	// Name of the probe, each once.
	Name string `json:"name"`
	// ContainerName names the container to probe.
	ContainerName string `json:"containerName"`
	// Probe to run.
	Probe ContainerProbeSpec `json:"probe"`
	// MarkerPolicy says which labels and annotations the pod has at which outcome; each outcome once.
	// It may be absent when podConditionType is set.
	// +optional
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`
	// PodConditionType is the condition of the pod that shows the outcome, each once.
	// It may be absent when markerPolicy is set.
	// +optional
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is a probe as a container has them, but what is left out means other values:
// initialDelaySeconds, timeoutSeconds, periodSeconds, successThreshold and failureThreshold all mean 1.
// TerminationGracePeriodSeconds is ignored.
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeMarkerPolicy is what the pod has at one outcome. At any other outcome it is removed, unless the policy of
// that one has it too.
type ProbeMarkerPolicy struct {
	// State is Succeeded or Failed.
	State ProbeState `json:"state"`
	// Labels of the pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ProbeState is the outcome of a probe.
type ProbeState string

const (
	// ProbeSucceeded is a probe that ended well as often in a row as successThreshold demands.
	ProbeSucceeded ProbeState = "Succeeded"
	// ProbeFailed is a probe that failed as often in a row as failureThreshold demands.
	ProbeFailed ProbeState = "Failed"
	// ProbeUnknown is a probe without outcome yet.
	ProbeUnknown ProbeState = "Unknown"
)

// PodProbeMarkerStatus is what the controller found.
type PodProbeMarkerStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration"`
	// MatchedPods counts the pods that are probed.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`
}

// PodProbeMarker runs probes in pods, and marks the pods with the outcome: by a condition, labels and annotations.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise
type PodProbeMarker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodProbeMarkerSpec   `json:"spec,omitempty"`
	Status PodProbeMarkerStatus `json:"status,omitempty"`
}

// PodProbeMarkerList is a list of PodProbeMarkers.
//
// +kubebuilder:object:root=true
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodProbeMarker `json:"items"`
}
