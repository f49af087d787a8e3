package pod

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// SidecarLookups are what the step that injects SidecarSets reads. FromManager binds them to the caches of a manager.
type SidecarLookups struct {
	// Sets of the cluster.
	Sets *Index
	// Namespaces reads metadata of namespaces, from a cache.
	Namespaces client.Reader
	// Revisions reads ControllerRevisions of the manager's namespace, from a cache. They must not be changed.
	Revisions client.Reader
	// Live reads the namespace, the revision and the set that a cache lacks; with nil they do not exist.
	Live client.Reader
	// Filled waits until Sets has all SidecarSets and the caches can be read, as Step.Ready does; nil if there is nothing
	// to wait for.
	Filled func(context.Context) error
}

func (l SidecarLookups) ready(ctx context.Context) error {
	if l.Filled == nil {
		return nil
	}
	return l.Filled(ctx)
}

// namespace returns one with its metadata; nil if it does not exist, where no pod can be created anyway.
func (l SidecarLookups) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := l.Namespaces.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) && l.Live != nil {
		err = l.Live.Get(ctx, types.NamespacedName{Name: name}, found)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return &corev1.Namespace{ObjectMeta: found.ObjectMeta}, nil
}

// newSet reads a set that the cache lacks; nil if it does not exist, because it was admitted and is not stored yet.
func (l SidecarLookups) newSet(ctx context.Context, name string) (*sidecar.Set, error) {
	if l.Live == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	raw := stored.Untyped(scope.Kind())
	err := l.Live.Get(ctx, types.NamespacedName{Name: name}, raw)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, &LookupError{What: "sidecarset " + name, Err: err}
	}
	object, invalid, err := scope.Decode(raw)
	if err = cmp.Or(err, invalid); err != nil {
		return nil, &sidecar.FieldError{Set: name, Field: "spec", Err: err}
	}
	set, _ := sidecar.Parse(object) // an error in it is returned when it selects the pod
	return set, nil
}
