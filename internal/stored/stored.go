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
//
// LeanPod drops from pods what nothing reads of them in a cache, which is most of their memory: arguments, probes,
// volumes, and the variables that neither come from labels and annotations nor belong to a feature. With LeanPods, pods
// share what is equal of the rest.
//
//	var pods stored.LeanPods
//	cache.ByObject{Transform: func(o any) (any, error) {
//		if pod, is := o.(*corev1.Pod); is {
//			pods.Pod(pod)
//		}
//		return o, nil
//	}}
//
// The laws of lean pods: a pod without what was dropped gives the same results in each decision about pods of a cache,
// and a lean pod stays as it is. A lean pod is no base for an update. What decides about new pods, or about what a
// review has, must not use one.
package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/ledger"
)

// Untyped is an object of a kind, for what asks for one to know the kind.
func Untyped(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// Read reads an object. Malformed says which part of it cannot be decoded; the object is then without its spec.
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

// Kind reads the objects of a kind from a cache, untyped, as the own writes left them. The key of an object is also the
// owner of its writes.
type Kind struct {
	GVK    schema.GroupVersionKind
	Writes *ledger.Ledger[*unstructured.Unstructured]
}

// Latest is an object as the own writes left it.
type Latest struct {
	// Object is nil where there is none.
	Object *unstructured.Unstructured
	// Cached reports whether the cache has an object of the name.
	Cached bool
	// RecheckAfter is when to read the object again where the cache lacks it, or shows an older state for seconds; zero
	// where it does not.
	RecheckAfter time.Duration
}

// Latest reads an object.
func (k Kind) Latest(ctx context.Context, from client.Reader, name types.NamespacedName) (Latest, error) {
	raw := Untyped(k.GVK)
	var cached []*unstructured.Unstructured
	switch err := from.Get(ctx, name, raw); {
	case err == nil:
		cached = append(cached, raw)
	case !apierrors.IsNotFound(err):
		return Latest{}, fmt.Errorf("read %s: %w", k.GVK.Kind, err)
	}
	objects, recheckAfter, err := k.Writes.Overlay(ctx, name, cached)
	if err != nil {
		return Latest{}, err
	}
	latest := Latest{Cached: len(cached) > 0, RecheckAfter: recheckAfter}
	if len(objects) > 0 {
		latest.Object = objects[0]
	}
	return latest, nil
}

// Named is an untyped object of the kind with a name alone: the target of a write, whose answer may be what the Go type
// cannot hold.
func (k Kind) Named(name types.NamespacedName) *unstructured.Unstructured {
	object := Untyped(k.GVK)
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	return object
}

// Confirmed records which objects of a cache are at least as new as what the API server stored after the process
// started. The first list of a cache may come from a watch cache that lags: a new leader then has an older spec than
// the leader before, and the dependents that follow from the newer spec look like surplus. From its first list on, a
// cache never goes back, so that one read for each object is enough. The zero value is empty.
type Confirmed struct {
	objects passes.Memory[types.NamespacedName, confirmation]
}

// confirmation is the generation from which on the object of a UID is confirmed.
type confirmation struct {
	uid        types.UID
	generation int64
}

// shows reports whether an object is at least that of the confirmation.
func (c confirmation) shows(object metav1.Object) bool {
	return c.uid == object.GetUID() && object.GetGeneration() >= c.generation
}

// retryBehind is when to look again at an object that the cache shows as it was before. The event of the change usually
// comes first.
const retryBehind = time.Second

// Confirm reads the metadata of an object past the cache, once in the life of the object and of c. It comes before what
// would do harm if the spec were older than what is stored. recheckAfter is zero where the spec is confirmed; otherwise
// the caller does nothing, and looks again then.
func (c *Confirmed) Confirm(
	ctx context.Context, live client.Reader, kind schema.GroupVersionKind, object metav1.Object,
) (recheckAfter time.Duration, err error) {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	known := c.objects.Recall(name)
	if known.uid != object.GetUID() {
		now, err := Metadata(ctx, live, kind, name)
		if err != nil {
			return 0, err
		}
		known = confirmation{uid: object.GetUID(), generation: math.MaxInt64} // it is gone, or is about to be
		if now != nil && now.UID == known.uid && now.DeletionTimestamp == nil {
			known.generation = now.Generation
		}
		c.objects.Note(name, func(k *confirmation) { *k = known })
	}
	if !known.shows(object) {
		return retryBehind, nil
	}
	return 0, nil
}

// Has reports whether Confirm needs no read, and finds the object confirmed.
func (c *Confirmed) Has(object metav1.Object) bool {
	return c.objects.Recall(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}).shows(object)
}

// Forget drops what is known of an object that is gone.
func (c *Confirmed) Forget(name types.NamespacedName) { c.objects.Forget(name) }
