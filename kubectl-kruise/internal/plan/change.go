package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// Apply returns an object as kubectl apply leaves it: with all fields of the manifest, and without those that only the
// last manifest had.
func Apply(live, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	last := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	modified, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	current, err := json.Marshal(live.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", live.GetName(), err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the manifest: %w", live.GetName(), err)
	}
	merged, err := jsonpatch.MergePatch(current, patch)
	if err != nil {
		return nil, fmt.Errorf("apply the manifest of %s: %w", live.GetName(), err)
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(merged); err != nil {
		return nil, fmt.Errorf("read %s with its changes: %w", live.GetName(), err)
	}
	keepDefaults(applied.Object["spec"], live.Object["spec"])
	return applied, nil
}

// Images reads arguments such as app=web:3. The container * is for all of them.
func Images(args []string) (map[string]string, error) {
	images := map[string]string{}
	for _, arg := range args {
		container, image, found := strings.Cut(arg, "=")
		if !found || container == "" || image == "" {
			return nil, fmt.Errorf("--image %q must be CONTAINER=IMAGE", arg)
		}
		images[container] = image
	}
	return images, nil
}

// SetImages gives containers other images.
func SetImages(containers []*corev1.Container, images map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(images)) {
		found := false
		for _, c := range containers {
			if c.Name == name || name == "*" {
				c.Image, found = images[name], true
			}
		}
		if !found {
			return fmt.Errorf("there is no container %s", name)
		}
	}
	return nil
}
