package launch

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PatchType is the type of the patches.
const PatchType = types.MergePatchType

// AddPatch returns the body, of PatchType, that adds keys to a barrier. The API server rejects it with a conflict if
// the barrier was replaced.
func AddPatch(barrier *corev1.ConfigMap, keys []string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": barrier.UID}, "data": dataOf(keys)})
}

// CompletePatch returns the body, of PatchType, that marks a pod as complete. The API server rejects it with a conflict
// if the pod was replaced.
func CompletePatch(pod metav1.Object, r Policy) ([]byte, error) {
	mark := map[string]string{r.Keys.LaunchCompletedKey(): "true"}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.GetUID(), "annotations": mark}})
}
