package stored

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/write"
)

// Finalizers returns the write of all finalizers of an object. An object that has changed since it was read is a
// conflict: another writer may have added a finalizer.
func (k Kind) Finalizers(object metav1.Object, all []string) *write.Write {
	return k.patch(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, write.Fields{
		"metadata": map[string]any{
			"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": all,
		},
	})
}

// Update returns the write that makes one state of an object another one. An object that has changed since it was read
// is a conflict.
func (k Kind) Update(was, is client.Object) (*write.Write, error) {
	data, err := difference{was, is}.Data()
	if err != nil {
		return nil, err
	}
	return k.patch(client.ObjectKeyFromObject(was), write.Bytes(data)), nil
}

// Change is Update for objects of a Go type, which the answer has, too.
func Change(was, is client.Object) *write.Write {
	return &write.Write{Verb: write.Patch, Object: was, Type: types.MergePatchType, Body: difference{was, is}}
}

// difference is the body of a patch that makes one state of an object another one.
type difference struct{ was, is client.Object }

// Data returns the merge patch, with the version of the object that was read.
func (d difference) Data() ([]byte, error) {
	data, err := client.MergeFromWithOptions(d.was, client.MergeFromWithOptimisticLock{}).Data(d.is)
	if err != nil {
		return nil, fmt.Errorf("compare %T: %w", d.was, err)
	}
	return data, nil
}

func (k Kind) patch(name types.NamespacedName, body write.Body) *write.Write {
	return &write.Write{Verb: write.Patch, Object: k.Named(name), Type: types.MergePatchType, Body: body}
}
