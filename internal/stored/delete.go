package stored

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes an object, unless the object has changed since it was read. An object that is gone is no error.
func (k Kind) Delete(ctx context.Context, c client.Writer, object metav1.Object) error {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	uid, version := object.GetUID(), object.GetResourceVersion()
	gone := k.Named(name)
	if err := c.Delete(ctx, gone, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", k.GVK.Kind, err)
	}
	if k.Writes != nil {
		gone.SetUID(uid)
		k.Writes.Deleted(name, gone)
	}
	return nil
}
