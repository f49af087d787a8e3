// Package stored reads objects of which the API server may hold what their Go type cannot.
//
// Templates of pods have no schema in the CRDs, so that a field of a later Kubernetes is kept. Without a webhook a user
// can therefore store a list where a number belongs. An informer of the Go type stops at the first such object, and
// with it every other object of the kind. One of untyped objects does not; each is decoded when it is read, and only
// the one that cannot be is in trouble.
//
//	ctrl.NewControllerManagedBy(mgr).For(stored.Untyped(gvk))...
//	...
//	set, malformed, err := stored.Read[v1beta1.CloneSet](ctx, mgr.GetCache(), gvk, key)
package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Untyped is an object of a kind, for what asks for one to know the kind.
func Untyped(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// Read reads an object. Malformed says what of it cannot be decoded; the object is then without its spec.
// The reader must serve untyped objects from its cache, if it has one: the client of a manager does not by default, its
// cache does.
func Read[T any](
	ctx context.Context, from client.Reader, gvk schema.GroupVersionKind, name types.NamespacedName,
) (object *T, malformed, err error) {
	raw := Untyped(gvk)
	if err := from.Get(ctx, name, raw); err != nil {
		return nil, nil, err
	}
	return Decode[T](raw)
}

// Decode is Read of an object that is there.
func Decode[T any](raw *unstructured.Unstructured) (object *T, malformed, err error) {
	if object, err = decode[T](raw); err == nil {
		return object, nil, nil
	}
	malformed = complaint[T](raw)
	rest := maps.Clone(raw.Object)
	delete(rest, "spec")
	if object, err = decode[T](&unstructured.Unstructured{Object: rest}); err != nil {
		return nil, nil, fmt.Errorf("decode what is around the spec: %w", err)
	}
	return object, malformed, nil
}

// DecodeMetadata is Decode, with an object that has its metadata alone where not even the status can be decoded.
func DecodeMetadata[T any](raw *unstructured.Unstructured) (object *T, malformed, err error) {
	if object, malformed, err = Decode[T](raw); err == nil {
		return object, malformed, nil
	}
	malformed = err
	object, err = decode[T](&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": raw.Object["metadata"],
	}})
	return object, malformed, err
}

// complaint is what a decoder says that names the field.
func complaint[T any](raw *unstructured.Unstructured) error {
	content, err := Content(raw)
	var text []byte
	if err == nil {
		text, err = json.Marshal(content)
	}
	if err == nil {
		err = json.Unmarshal(text, new(T))
	}
	if err == nil {
		return fmt.Errorf("the object is not what its kind is")
	}
	return err
}
