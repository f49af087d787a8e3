package finish

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
)

// patch adds a write of one field of the pod.
func (d *decider) patch(subresource, field string, value any) {
	body := merge{"metadata": map[string]any{"uid": d.Pod.UID, "resourceVersion": d.Pod.ResourceVersion}, field: value}
	d.action.Writes = append(d.action.Writes, &write.Write{
		Verb: write.Patch, Object: d.Pod, Subresource: subresource, Type: types.StrategicMergePatchType, Body: body,
	})
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
