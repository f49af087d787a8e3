package imagelistpulljob

import (
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// statusPatch makes the status of a list another one; nil where it is the same. It has the counters in it that the schema
// requires, also those that are the same: where nothing is stored yet, they are lacking.
func statusPatch(list *v1beta1.ImageListPullJob, status *v1beta1.ImageListPullJobStatus) ([]byte, error) {
	if apiequality.Semantic.DeepEqual(status, &list.Status) {
		return nil, nil
	}
	fresh := list.DeepCopy()
	fresh.Status = *status
	difference, err := client.MergeFrom(list).Data(fresh)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	patch := struct {
		Metadata map[string]any `json:"metadata"`
		Status   map[string]any `json:"status"`
	}{map[string]any{"uid": list.UID}, map[string]any{}}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	maps.Copy(patch.Status, map[string]any{
		"desired": status.Desired, "active": status.Active, "completed": status.Completed, "succeeded": status.Succeeded,
	})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return data, nil
}
