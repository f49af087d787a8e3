package kruise

import corev1 "k8s.io/api/core/v1"

// Annotations of a pod whose liveness probes run outside of the kubelet.
const (
	// UsingEnhancedLivenessKey is "true" where the user asks for it.
	UsingEnhancedLivenessKey = "apps.kruise.io/using-enhanced-liveness"
	// ContainerProbeContextKey holds the probes that were taken out of the containers: []ContainerLivenessProbe in JSON.
	ContainerProbeContextKey = "apps.kruise.io/container-probe-context"
)

// ContainerLivenessProbe is the liveness probe of one container.
type ContainerLivenessProbe struct {
	// Name of the container.
	Name string `json:"name"`
	// LivenessProbe as it was in the container.
	LivenessProbe corev1.Probe `json:"livenessProbe"`
}
