package stored

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find reads a typed object; nil where it does not exist.
func Find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, name types.NamespacedName) (P, error) {
	object := P(new(T))
	return found(object, from.Get(ctx, name, object), name)
}

// Metadata reads the metadata of an object; nil where it does not exist.
func Metadata(
	ctx context.Context, from client.Reader, gvk schema.GroupVersionKind, name types.NamespacedName,
) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return found(object, from.Get(ctx, name, object), name)
}

func found[T any](object *T, err error, name types.NamespacedName) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %T %s: %w", object, name, err)
	}
	return object, nil
}

// List reads the objects of a kind, untyped. They may be those of the cache, and are only read.
func List(
	ctx context.Context, from client.Reader, gvk schema.GroupVersionKind, o ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := from.List(ctx, list, append(o, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	return Pointers(list.Items), nil
}

// Pointers are the addresses of the items of a list.
func Pointers[T any](items []T) []*T {
	pointers := make([]*T, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return pointers
}

// MetadataOf is an object with a name alone: the target of a write, of whose answer only the metadata is decoded.
func MetadataOf(gvk schema.GroupVersionKind, name types.NamespacedName) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	object.SetGroupVersionKind(gvk)
	return object
}
