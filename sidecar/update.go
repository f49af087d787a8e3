package sidecar

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// PatchAnnotations is what spec.patchPodMetadata makes of a pod's annotations: those that change, with their new values.
func PatchAnnotations(set *appsv1beta1.SidecarSet, annotations map[string]string) (map[string]string, error) {
	in := injector{pod: &corev1.Pod{}}
	in.pod.Annotations = maps.Clone(annotations)
	if err := in.patchMetadata(&Set{object: set}); err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for key, value := range in.pod.Annotations {
		if was, had := annotations[key]; !had || was != value {
			changed[key] = value
		}
	}
	return changed, nil
}
