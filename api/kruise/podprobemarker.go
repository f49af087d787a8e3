package kruise

// Annotations of a pod that may run where no daemon does, so that the provider of the node runs its probes.
const (
	// PodProbeMarkerAnnotationKey holds the probes: a JSON list of objects with name, containerName, probe
	// and podConditionType.
	PodProbeMarkerAnnotationKey = "kruise.io/podprobe"
	// PodProbeMarkerListAnnotationKey names the PodProbeMarkers that the probes come from, joined by commas.
	PodProbeMarkerListAnnotationKey = "kruise.io/podprobemarker-list"
)
