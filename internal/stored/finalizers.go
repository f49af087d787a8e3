package stored

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteFinalizers writes all finalizers of an object, and returns the object that the API server answers. An object that has changed
// since it was read is a conflict: another writer may have added a finalizer.
func (k Kind) WriteFinalizers(ctx context.Context, c client.Writer, object metav1.Object, all []string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": all,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode finalizers: %w", err)
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	answer := k.Named(name)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return nil, fmt.Errorf("write finalizers: %w", err)
	}
	if k.Writes != nil {
		k.Writes.Patched(name, answer)
	}
	return answer, nil
}
