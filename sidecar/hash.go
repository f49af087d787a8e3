package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Hash tells whether a pod has the containers of a set as they are now. It is over all of the containers and, where one of
// the init containers is a native sidecar, over all of these too; nothing else of the set matters. OpenKruise computes the
// same.
func Hash(set *appsv1beta1.SidecarSet) (string, error) {
	return hash(set.Spec.Containers, set.Spec.InitContainers)
}

// HashWithoutImage is like Hash with every image left out. As long as a pod has the same, new images can be brought to it in
// place.
func HashWithoutImage(set *appsv1beta1.SidecarSet) (string, error) {
	return hash(withoutImages(set.Spec.Containers), withoutImages(set.Spec.InitContainers))
}

func withoutImages(containers []appsv1beta1.SidecarContainer) []appsv1beta1.SidecarContainer {
	bare := slices.Clone(containers)
	for i := range bare {
		bare[i].Image = ""
	}
	return bare
}

func hash(containers, inits []appsv1beta1.SidecarContainer) (string, error) {
	if len(containers) == 0 {
		containers = nil // written [] or not at all, it is the same set
	}
	content := map[string][]appsv1beta1.SidecarContainer{"containers": containers}
	if slices.ContainsFunc(inits, isNative) {
		content["initContainers"] = inits
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encode containers: %w", err)
	}
	sum := sha256.Sum256(data)
	// No vowels, and no digits that look like letters.
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	text := []byte(hex.EncodeToString(sum[:]))
	for i, b := range text {
		text[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(text), nil
}

// isNative says that an init container keeps running beside the containers.
func isNative(c appsv1beta1.SidecarContainer) bool { return keepsRunning(&c.Container) }

func keepsRunning(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
