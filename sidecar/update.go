package sidecar

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// IsRecord reports whether pods record sets in an annotation. No set can write it by patchPodMetadata: a wrong record
// would stop the injection of new pods, and hide running ones from the controller, also for other sets.
func IsRecord(key string) bool {
	switch key {
	case kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey,
		kruise.SidecarSetInPlaceUpdateStateKey, kruise.SidecarSetWorkingHotUpgradeContainerKey:
		return true
	}
	return strings.HasPrefix(key, kruise.SidecarSetVersionKeyPrefix) ||
		strings.HasPrefix(key, kruise.SidecarSetVersionAltKeyPrefix)
}

// PatchAnnotations returns the annotations of a pod that spec.patchPodMetadata changes, with their new values.
func PatchAnnotations(set *appsv1beta1.SidecarSet, annotations map[string]string) (map[string]string, error) {
	in := injector{pod: &corev1.Pod{}}
	in.pod.Annotations = maps.Clone(annotations)
	if err := in.patchMetadata(&Set{object: set}); err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for key, value := range in.pod.Annotations {
		if was, ok := annotations[key]; !ok || was != value {
			changed[key] = value
		}
	}
	return changed, nil
}
