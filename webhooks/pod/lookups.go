package pod

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Lookups are where the steps find what they need to know. FromManager makes them of a manager's caches.
type Lookups struct {
	// Sets of the cluster.
	Sets *Index
	// Namespaces gives metadata of namespaces, from a cache.
	Namespaces client.Reader
	// Revisions gives ControllerRevisions of the manager's namespace, from a cache. They must not be changed.
	Revisions client.Reader
	// Live gives metadata of a namespace, and the revision and the set, that the cache does not have yet; nil takes them for such
	// as do not exist.
	Live client.Reader
	// Filled waits until Sets has all SidecarSets and the caches can be read. It returns at once if they can, also with a context
	// that has ended. Nil if nothing needs to be waited for.
	Filled func(context.Context) error
}

func (l Lookups) ready(ctx context.Context) error {
	if l.Filled == nil {
		return nil
	}
	return l.Filled(ctx)
}

// namespace is one with its metadata. One that does not exist is nil: no pod can be created there anyway.
func (l Lookups) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
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

// newSet is a set that the cache does not have; nil if the API server has none either, for one that was admitted is not there yet.
func (l Lookups) newSet(ctx context.Context, name string) (*sidecar.Set, error) {
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
	object, malformed, err := scope.Decode(raw)
	if err = cmp.Or(err, malformed); err != nil {
		return nil, &sidecar.FieldError{Set: name, Field: "spec", Err: err}
	}
	set, _ := sidecar.Parse(object) // what of it cannot be read is told when it is selected
	return set, nil
}

// revisionsOf are by a name one revision, by a custom version those of the set.
func revisionsOf(ctx context.Context, from client.Reader, namespace string, set *sidecar.Set) ([]*appsv1.ControllerRevision, error) {
	if name := set.Object().Spec.InjectionStrategy.Revision.RevisionName; name != nil {
		if *name == "" || len(path.IsValidPathSegmentName(*name)) > 0 {
			return nil, nil // no object has it, and no client asks for it
		}
		found := &appsv1.ControllerRevision{}
		err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: *name}, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []*appsv1.ControllerRevision{found}, err
	}
	list := &appsv1.ControllerRevisionList{}
	err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{appsv1beta1.SidecarSetNameLabel: set.Name()})
	if err != nil {
		return nil, err
	}
	all := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// asksAgain is the pause between two reads past the cache for the revision that a set is pinned to and that is nowhere: pods that
// it selects may come by hundreds, and each is refused, or goes without.
const asksAgain = time.Second

// absences are the sets whose revision the API server did not have either.
type absences struct {
	mu  sync.Mutex
	all map[string]absence
}

type absence struct {
	uid        types.UID
	generation int64
	until      time.Time
}

// known says that it was asked for a moment ago, of the set as it is.
func (k *absences) known(set *appsv1beta1.SidecarSet, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, ok := k.all[set.Name]
	return ok && a.uid == set.UID && a.generation == set.Generation && now.Before(a.until)
}

// note that it was not there.
func (k *absences) note(set *appsv1beta1.SidecarSet, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= mostRestored {
		k.all = map[string]absence{} // sets come and go
	}
	k.all[set.Name] = absence{set.UID, set.Generation, now.Add(asksAgain)}
}

// mostRestored sets are kept as former revisions have them.
const mostRestored = 1000

// restorations are the sets as former revisions have them, one for each set: it is pinned to one at a time.
type restorations struct {
	mu  sync.Mutex
	all map[string]restoration
}

type restoration struct {
	of       *sidecar.Set
	revision types.UID
	version  string
	set      *sidecar.Set
}

// restore gives a set as a revision has it, of which the second pod costs nothing.
func (k *restorations) restore(set *sidecar.Set, r *appsv1.ControllerRevision) (*sidecar.Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.all[set.Name()]; ok && have.of == set && have.revision == r.UID && have.version == r.ResourceVersion {
		return have.set, nil
	}
	restored, err := sidecar.Restore(set, r)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if k.all == nil || len(k.all) >= mostRestored {
		k.all = map[string]restoration{} // sets come and go
	}
	k.all[set.Name()] = restoration{of: set, revision: r.UID, version: r.ResourceVersion, set: restored}
	return restored, nil
}
