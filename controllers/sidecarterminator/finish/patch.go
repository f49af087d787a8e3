package finish

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
)

// Writes returns the writes of the action, in their order: the images and the status of the pod, the deletion of the
// former request, and the creation of the next one. When one fails, the others wait for the next action. The patches
// contain the resource version of the pod: the API server refuses them, as a conflict, if anything of the pod was
// written meanwhile, because a main container may have started again. A request that exists already is as good as a
// created one.
func (a Action) Writes(in Input) []*write.Write {
	var writes []*write.Write
	patch := func(subresource, field string, value any) {
		body := merge{"metadata": map[string]any{"uid": in.Pod.UID, "resourceVersion": in.Pod.ResourceVersion}, field: value}
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: in.Pod, Subresource: subresource, Type: types.StrategicMergePatchType, Body: body,
		})
	}
	if len(a.Images) > 0 {
		var containers []map[string]string
		for i := range in.Pod.Spec.Containers {
			name := in.Pod.Spec.Containers[i].Name
			if image, ok := a.Images[name]; ok {
				containers = append(containers, map[string]string{"name": name, "image": image})
			}
		}
		patch(write.Main, "spec", map[string]any{"containers": containers})
	}
	if a.Status != nil {
		patch(write.Status, "status", map[string]any{
			"phase": a.Status.Phase, "conditions": []corev1.PodCondition{a.Status.Condition},
		})
	}
	if a.Delete != "" {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: in.Request})
	}
	if a.Create != nil {
		writes = append(writes, &write.Write{Verb: write.Create, Object: a.Create})
	}
	return writes
}

// merge is the body of a strategic merge patch.
type merge map[string]any

// Data returns the bytes.
func (m merge) Data() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}
