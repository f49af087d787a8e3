package finish

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PatchType is the type of the patches.
const PatchType = types.StrategicMergePatchType

// ImagesPatch is the body, of PatchType, that gives containers of a pod other images. The API server refuses it, as a conflict,
// when anything of the pod has been written meanwhile: the images may be there already.
func ImagesPatch(pod *corev1.Pod, images map[string]string) ([]byte, error) {
	var containers []map[string]string
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		if image, ok := images[name]; ok {
			containers = append(containers, map[string]string{"name": name, "image": image})
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"spec":     map[string]any{"containers": containers},
	})
}

// StatusPatch is the body, of PatchType, for the status of a pod. The API server refuses it, as a conflict, when anything of the
// pod has been written meanwhile: a main container may have started again.
func StatusPatch(pod *corev1.Pod, s *Status) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"phase": s.Phase, "conditions": []corev1.PodCondition{s.Condition}},
	})
}
