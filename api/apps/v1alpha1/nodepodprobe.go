package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodePodProbeSpec is what the node shall probe.
type NodePodProbeSpec struct {
	// PodProbes by pod.
	// +optional
	PodProbes []PodProbe `json:"podProbes,omitempty"`
}

// PodProbe is what to probe in one pod.
type PodProbe struct {
	// Name of the pod.
	Name string `json:"name"`
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// UID of the pod.
	UID string `json:"uid"`
	// IP of the pod, empty while it has none.
	IP string `json:"IP"`
	// Probes to run.
	// +optional
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is one probe.
type ContainerProbe struct {
	// Name is the PodProbeMarker and its probe, joined by #.
	Name string `json:"name"`
	// ContainerName names the container to probe.
	ContainerName string `json:"containerName"`
	// Probe to run. Its ports are numbers.
	Probe ContainerProbeSpec `json:"probe"`
}

// NodePodProbeStatus is what the node found.
type NodePodProbeStatus struct {
	// PodProbeStatuses by pod.
	// +optional
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`
}

// PodProbeStatus is what was found in one pod.
type PodProbeStatus struct {
	// Name of the pod.
	Name string `json:"name"`
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// UID of the pod.
	UID string `json:"uid"`
	// ProbeStates by probe.
	// +optional
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ContainerProbeState is the outcome of one probe.
type ContainerProbeState struct {
	// Name of the probe, as in the spec.
	Name string `json:"name"`
	// State is Succeeded, Failed or Unknown.
	State ProbeState `json:"state"`
	// LastProbeTime is when the outcome was last reported.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when the state last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Message is what the probe wrote, cut to 1024.
	// +optional
	Message string `json:"message,omitempty"`
}

// NodePodProbe is the list of probes that one node runs, and of their outcomes. It has the name of the node.
// A controller fills it from PodProbeMarkers.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,scope=Cluster
type NodePodProbe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodePodProbeSpec   `json:"spec,omitempty"`
	Status NodePodProbeStatus `json:"status,omitempty"`
}

// NodePodProbeList is a list of NodePodProbes.
//
// +kubebuilder:object:root=true
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePodProbe `json:"items"`
}
