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

// Hash returns the hash of the containers of a set, by which a pod records the version that it has. It covers all
// containers and, if one of the init containers is a native sidecar, all init containers; nothing else of the set.
// OpenKruise computes the same.
func Hash(set *appsv1beta1.SidecarSet) (string, error) {
	return hash(set.Spec.Containers, set.Spec.InitContainers)
}

// HashWithoutImage returns the hash without the images. A pod with the same one can get new images in place.
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
		containers = nil // an empty list and none are the same set
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

// isNative reports whether an init container keeps running next to the containers.
func isNative(c appsv1beta1.SidecarContainer) bool { return keepsRunning(&c.Container) }

func keepsRunning(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
