package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// report writes the status of the pods as the writes left them, if it changed.
func (a *act) report(ctx context.Context) error {
	status := a.plan.Status
	if len(a.fresh) > 0 {
		var err error
		if status, err = rollout.Count(a.input(ctx)); err != nil && unfit(err) == nil {
			return err
		}
	}
	status.CollisionCount = ptr.To(ptr.Deref(a.revision.Collisions, 0))
	return a.writeStatus(ctx, &status)
}

func (a *act) writeStatus(ctx context.Context, status *v1beta1.SidecarSetStatus) error {
	if apiequality.Semantic.DeepEqual(status, &a.set.Status) {
		return nil
	}
	patch, err := a.statusPatch(status)
	if err != nil {
		return err
	}
	object := stored.Untyped(gvk()) // the answer may be what no SidecarSet can be
	object.SetName(a.set.Name)
	err = a.client.Status().Patch(ctx, object, patch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	if err == nil {
		a.setWrites.Patched(a.key(), object)
	}
	return nil
}

// statusPatch has the counters in it that the schema requires, also those that are the same: where nothing is stored yet, they
// are lacking.
func (a *act) statusPatch(status *v1beta1.SidecarSetStatus) (client.Patch, error) {
	fresh := *a.set
	fresh.Status = *status
	difference, err := client.MergeFrom(a.set).Data(&fresh)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	var patch struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	if patch.Status == nil {
		patch.Status = map[string]any{}
	}
	patch.Metadata.UID = a.set.UID
	maps.Copy(patch.Status, map[string]any{
		"matchedPods": status.MatchedPods, "updatedPods": status.UpdatedPods, "readyPods": status.ReadyPods,
	})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}
