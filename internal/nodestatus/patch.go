// Package nodestatus writes the status of a NodeImage, which several do: the daemon of the node, and the controller that speaks
// for nodes that are silent.
package nodestatus

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Patch is what changes in the status, bound to the version that was looked at: what somebody else has written since is not
// written over. The counters are always in it. One that is 0 as long as nothing is stored would otherwise never be, and the
// schema asks for one of them, and whoever lists NodeImages for all.
func Patch(was *v1beta1.NodeImage, status *v1beta1.NodeImageStatus) (client.Patch, error) {
	is := was.DeepCopy()
	is.Status = *status
	difference, err := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}).Data(is)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	patch := struct {
		Metadata map[string]any `json:"metadata"`
		Status   map[string]any `json:"status"`
	}{Status: map[string]any{}}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	maps.Copy(patch.Status, map[string]any{
		"desired": status.Desired, "succeeded": status.Succeeded, "failed": status.Failed,
		"pulling": status.Pulling, "waiting": status.Waiting,
	})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}
