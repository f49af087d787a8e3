package podunavailablebudget

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// stamp records the name of the budget on pods. A pod whose write fails keeps no other pod from its stamp.
func (r *Reconciler) stamp(ctx context.Context, s *snapshot, all []stamp) error {
	_, err := batches.Each(all, func(of stamp) error {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid":         of.uid,
			"annotations": map[string]string{kruise.PodRelatedPubKey: s.budget.Name, kruise.PodRelatedPubKeyOld: s.budget.Name},
		}})
		if err != nil {
			return fmt.Errorf("encode annotations: %w", err)
		}
		pod := stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), types.NamespacedName{Namespace: s.budget.Namespace, Name: of.pod})
		switch err := r.api.Client.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, data)); {
		case write.IsOutdated(err):
			return nil // another pod has the name, or none
		case err != nil:
			return fmt.Errorf("stamp pod %s: %w", of.pod, err)
		}
		r.tracker.stamped(s.key(), of)
		return nil
	})
	return err
}
