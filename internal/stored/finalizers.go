package stored

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteFinalizers sends the write of all finalizers, and returns the object that the API server answers.
func (k Kind) WriteFinalizers(
	ctx context.Context, c client.Writer, object metav1.Object, all []string,
) (*unstructured.Unstructured, error) {
	w, err := k.Finalizers(object, all)
	if err != nil {
		return nil, err
	}
	data, err := w.Data()
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	answer := k.Named(name)
	if err := c.Patch(ctx, answer, client.RawPatch(w.Type, data)); err != nil {
		return nil, fmt.Errorf("write finalizers: %w", err)
	}
	if k.Writes != nil {
		k.Writes.Patched(name, answer)
	}
	return answer, nil
}
