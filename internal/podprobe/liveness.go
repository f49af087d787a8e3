package podprobe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// DetachLiveness returns a new pod without the liveness probes of its containers, and the names of these containers in
// their order. The annotation kruise.ContainerProbeContextKey of the returned pod has the probes. The returned pod is
// nil if the pod does not ask for it with the annotation kruise.UsingEnhancedLivenessKey, or has no liveness probe.
// Probes of init containers, and startup and readiness probes, stay. The pod is not changed.
func DetachLiveness(pod *corev1.Pod) (*corev1.Pod, []string, error) {
	if pod.Annotations[kruise.UsingEnhancedLivenessKey] != "true" {
		return nil, nil, nil
	}
	var names []string
	var probes []kruise.ContainerLivenessProbe
	containers := slices.Clone(pod.Spec.Containers)
	for i := range containers {
		c := &containers[i]
		if c.LivenessProbe == nil {
			continue
		}
		names = append(names, c.Name)
		probes = append(probes, kruise.ContainerLivenessProbe{Name: c.Name, LivenessProbe: *c.LivenessProbe})
		c.LivenessProbe = nil
	}
	if len(probes) == 0 {
		return nil, nil, nil
	}
	data, err := json.Marshal(probes)
	if err != nil {
		return nil, nil, fmt.Errorf("encode liveness probes: %w", err)
	}
	next := *pod
	next.Annotations = maps.Clone(pod.Annotations)
	next.Annotations[kruise.ContainerProbeContextKey] = string(data)
	next.Spec.Containers = containers
	return &next, names, nil
}
