package podstates

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// WhiteList returns the kinds that PersistentPodStates may refer to beside StatefulSets, as the ConfigMap
// kruise-configuration lists them.
func WhiteList(config *corev1.ConfigMap) ([]schema.GroupVersionKind, error) {
	text := config.Data[kruise.PersistentPodStateWhiteListKey]
	if text == "" {
		return nil, nil
	}
	var list struct {
		Workloads []schema.GroupVersionKind `json:"workloads"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("key %s of ConfigMap %s/%s: %w",
			kruise.PersistentPodStateWhiteListKey, config.Namespace, config.Name, err)
	}
	return list.Workloads, nil
}
