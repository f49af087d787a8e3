package stored

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

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
