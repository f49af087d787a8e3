package replicas

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

const (
	// Period is how often a workload of a kind that is not watched is read.
	Period = time.Minute
	// MaxUnwatched bounds how many workloads of such kinds are read in one namespace within Period. The replicas of the others are unknown.
	MaxUnwatched = 100
	// maxMemo bounds how many answers are kept.
	maxMemo = 10000
)

// Finder reads how many replicas workloads want. It is safe for concurrent use.
type Finder struct {
	// Cached reads metadata of the watched kinds, Live of the others.
	Cached, Live client.Reader
	// Scales reads scale subresources.
	Scales client.Client
	// Mapper has the kinds that are served.
	Mapper meta.RESTMapper
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
	// watched are the kinds whose metadata is in the cache.
	watched map[schema.GroupKind]schema.GroupVersionKind
	sizes   map[types.UID]size
	foreign map[Workload]answer
	shares  map[string]share
}

// share is how many reads a namespace has had since a time.
type share struct {
	since time.Time
	reads int
}

// Workload names a workload of a namespace.
type Workload struct {
	Namespace string
	pub.Target

	// UID is empty where only the name is given.
	UID types.UID
}

// size is what the scale of a workload is in one generation.
type size struct {
	generation int64
	replicas   int32
	unknown    bool
	selector   string
	uid        types.UID
}

// answer is what was read of a workload whose kind is not watched.
type answer struct {
	Found
	at time.Time
}

// Found is a workload as it was read.
type Found struct {
	pub.Workload

	// Selector selects the pods of the workload, where its scale has one.
	Selector string
	// Unwatched means that no event reports a change.
	Unwatched bool
}

// Of returns the workload that an object refers to.
func Of(namespace string, ref *metav1.OwnerReference) Workload {
	gv, _ := schema.ParseGroupVersion(ref.APIVersion)
	return Workload{namespace, pub.Target{Group: gv.Group, Kind: ref.Kind, Name: ref.Name}, ref.UID}
}

// GroupKind returns the kind of the workload.
func (w Workload) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: w.Group, Kind: w.Kind}
}

// Top returns the workload that is scaled: the Deployment of a ReplicaSet, else the workload itself.
func (w *Finder) Top(ctx context.Context, of Workload) (Workload, error) {
	if of.GroupKind() != ReplicaSets() {
		return of, nil
	}
	set, err := w.metadata(ctx, of)
	if err != nil || set == nil {
		return of, err
	}
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
		if above := Of(of.Namespace, owner); above.GroupKind() == Deployments() {
			return above, nil
		}
	}
	return of, nil
}

// metadata reads a workload of a kind that is watched; nil where it does not exist.
func (w *Finder) metadata(ctx context.Context, of Workload) (*metav1.PartialObjectMetadata, error) {
	w.mu.Lock()
	gvk, watched := w.watched[of.GroupKind()]
	w.mu.Unlock()
	if !watched {
		return nil, nil
	}
	object, err := stored.Metadata(ctx, w.Cached, gvk, types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	if object == nil || of.UID != "" && object.UID != of.UID {
		return nil, err
	}
	return object, nil
}

// Find returns a workload. One that does not exist or terminates is gone.
func (w *Finder) Find(ctx context.Context, of Workload) (Found, error) {
	w.mu.Lock()
	gvk, watched := w.watched[of.GroupKind()]
	w.mu.Unlock()
	if !watched {
		return w.findForeign(ctx, of)
	}
	object, err := w.metadata(ctx, of)
	if err != nil || object == nil || object.DeletionTimestamp != nil {
		return gone(of), err
	}
	object.SetGroupVersionKind(gvk)
	w.mu.Lock()
	s, ok := w.sizes[object.UID]
	w.mu.Unlock()
	if !ok || s.generation != object.Generation {
		if s, err = w.size(ctx, object); err != nil {
			return Found{}, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sizes == nil || len(w.sizes) >= maxMemo {
			w.sizes = map[types.UID]size{}
		}
		w.sizes[object.UID] = s
	}
	return sized(object, s), nil
}

// Watch declares that the metadata of a kind is in the cache.
func (w *Finder) Watch(kind schema.GroupKind, gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = map[schema.GroupKind]schema.GroupVersionKind{}
	}
	w.watched[kind] = gvk
}

// IsWatched reports whether the metadata of a workload is in the cache.
func (w *Finder) IsWatched(of Workload) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, is := w.watched[of.GroupKind()]
	return is
}

// ReplicaSetsOf returns the UIDs of the ReplicaSets of a Deployment, sorted.
func (w *Finder) ReplicaSetsOf(ctx context.Context, namespace string, deployment types.UID) ([]types.UID, error) {
	w.mu.Lock()
	gvk := w.watched[ReplicaSets()]
	w.mu.Unlock()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := w.Cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list replicasets: %w", err)
	}
	var all []types.UID
	for i := range list.Items {
		set := &list.Items[i]
		if owner := metav1.GetControllerOfNoCopy(set); owner != nil && owner.UID == deployment && set.DeletionTimestamp == nil {
			all = append(all, set.UID)
		}
	}
	slices.Sort(all)
	return all, nil
}

func gone(of Workload) Found {
	return Found{Workload: pub.Workload{UID: of.UID, Gone: true}}
}

func sized(object *metav1.PartialObjectMetadata, s size) Found {
	return Found{Workload: pub.Workload{UID: object.UID, Replicas: s.replicas, Unknown: s.unknown}, Selector: s.selector}
}

// size reads the scale of a workload. The replicas of one without a scale are unknown.
func (w *Finder) size(ctx context.Context, of *metav1.PartialObjectMetadata) (size, error) {
	parent := stored.Untyped(of.GroupVersionKind())
	parent.SetNamespace(of.Namespace)
	parent.SetName(of.Name)
	scale := stored.Untyped(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	s := size{generation: of.Generation}
	switch err := w.Scales.SubResource("scale").Get(ctx, parent, scale); {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		s.unknown = true
	case err != nil:
		return s, fmt.Errorf("read the scale of %s %s: %w", of.Kind, of.Name, err)
	default:
		replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
		s.selector, _, _ = unstructured.NestedString(scale.Object, "status", "selector")
		s.replicas, s.uid = int32(min(max(replicas, 0), math.MaxInt32)), scale.GetUID()
	}
	return s, nil
}

// findForeign returns a workload of a kind that is not watched, as it was within the last minute.
func (w *Finder) findForeign(ctx context.Context, of Workload) (Found, error) {
	w.mu.Lock()
	known, ok := w.foreign[of]
	w.mu.Unlock()
	if ok && w.Now().Before(known.at.Add(Period)) {
		return known.Found, nil
	}
	if !w.mayRead(of.Namespace) {
		return Found{Workload: pub.Workload{UID: of.UID, Unknown: true}, Unwatched: true}, nil
	}
	is, err := w.read(ctx, of)
	if err != nil {
		return Found{}, err
	}
	is.Unwatched = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.foreign == nil || len(w.foreign) >= maxMemo {
		w.foreign = map[Workload]answer{}
	}
	w.foreign[of] = answer{is, w.Now()}
	return is, nil
}

// mayRead takes one read from the share of a namespace.
func (w *Finder) mayRead(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shares == nil || len(w.shares) >= maxMemo {
		w.shares = map[string]share{}
	}
	s, now := w.shares[namespace], w.Now()
	if !now.Before(s.since.Add(Period)) {
		s = share{since: now}
	}
	s.reads++
	w.shares[namespace] = s
	return s.reads <= MaxUnwatched
}

// read reads a workload live. One of a kind that is not served, not namespaced, or that the controller may not read, has unknown replicas.
func (w *Finder) read(ctx context.Context, of Workload) (Found, error) {
	unknown := Found{Workload: pub.Workload{UID: of.UID, Unknown: true}}
	mapping, err := w.Mapper.RESTMapping(of.GroupKind())
	switch {
	case meta.IsNoMatchError(err):
		return unknown, nil
	case err != nil:
		return Found{}, fmt.Errorf("look up %s: %w", of.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return unknown, nil
	}
	object, err := stored.Metadata(ctx, w.Live, mapping.GroupVersionKind, types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	switch {
	case apierrors.IsForbidden(err):
		object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, UID: of.UID}}
	case err != nil:
		return Found{}, err
	case object == nil || object.DeletionTimestamp != nil || of.UID != "" && object.UID != of.UID:
		return gone(of), nil
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	s, err := w.size(ctx, object)
	if apierrors.IsForbidden(err) {
		return unknown, nil
	}
	object.UID = cmp.Or(object.UID, s.uid)
	return sized(object, s), err
}

// Selector parses the selector of a scale; nil where the scale has none, or one that cannot be read.
func Selector(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil || text == "" || selector.Empty() {
		return nil
	}
	return selector
}

// Deployments returns their kind.
func Deployments() schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: "Deployment"} }

// ReplicaSets returns their kind.
func ReplicaSets() schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} }
