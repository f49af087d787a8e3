package launch

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PatchType is the type of the patches.
const PatchType = types.MergePatchType

// AddPatch is the body, of PatchType, that adds keys to a barrier. The API server refuses it, as a conflict, when the barrier has
// been replaced meanwhile.
func AddPatch(barrier *corev1.ConfigMap, keys []string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": barrier.UID}, "data": dataOf(keys)})
}

// CompletePatch is the body, of PatchType, that marks a pod. The API server refuses it, as a conflict, when another pod has
// taken the name meanwhile.
func CompletePatch(pod metav1.Object) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.GetUID(), "annotations": markOf()}})
}
