package ephemeraljob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// template returns a pod template with the containers of a job as ordinary ones: a pod template has no ephemeral
// containers. What only a pod can answer is left out: the target of a container, and the volumes, for each of which
// another one stands.
func template(content map[string]any, job *v1alpha1.EphemeralJob) map[string]any {
	spec, _ := content["spec"].(map[string]any)
	from, _ := spec["template"].(map[string]any)
	list, _ := from["ephemeralContainers"].([]any)
	containers := make([]any, len(list))
	for i, c := range list {
		fields, _ := c.(map[string]any)
		container := map[string]any{}
		for name, value := range fields {
			if name != "targetContainerName" {
				container[name] = value
			}
		}
		containers[i] = container
	}
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "dry-run"}},
		"spec":     map[string]any{"containers": containers, "volumes": volumes(job.Spec.Template.EphemeralContainers)},
	}
}

// volumes returns a volume of each name that containers mount. A claim can be mounted and be a device.
func volumes(containers []corev1.EphemeralContainer) []any {
	var all []any
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] && len(validation.IsDNS1123Label(name)) == 0 {
			known[name] = true
			all = append(all, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": "dry-run"}})
		}
	}
	for i := range containers {
		for _, mount := range containers[i].VolumeMounts {
			add(mount.Name)
		}
		for _, device := range containers[i].VolumeDevices {
			add(device.Name)
		}
	}
	return all
}

// pathOf returns the path in a job of a path in the template.
func pathOf(path string) string {
	const containers, at = "spec.template.spec.containers", "spec.template.ephemeralContainers"
	if rest, is := strings.CutPrefix(path, containers); is {
		return at + rest
	}
	return at
}
