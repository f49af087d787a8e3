package replicas

import (
	"context"
	"fmt"
	"math"
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
	// MaxUnwatched bounds how many workloads of such kinds are read in one namespace within Period. The replicas of the
	// others are unknown.
	MaxUnwatched = 100
	// maxMemo bounds how many answers are kept.
	maxMemo = 10000
)

// Finder reads how many replicas workloads want. It is safe for concurrent use.
type Finder struct {
	// Cached reads metadata of the watched kinds, Live of the others.
	Cached, Live client.Reader
	// Indexer adds the index that ReplicaSetsOf needs to Cached; nil where Cached has the index.
	Indexer client.FieldIndexer
	// Scales reads scale subresources.
	Scales client.Client
	// Mapper has the kinds that are served.
	Mapper meta.RESTMapper
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
	// watched are the kinds whose metadata is in the cache.
	watched map[schema.GroupKind]schema.GroupVersionKind
	// indexed reports that Cached has the index of ReplicaSets.
	indexed bool
	sizes   map[types.UID]size
	foreign map[Workload]answer
	shares  map[string]share
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
	above, is, err := w.Above(ctx, of)
	if err != nil || !is || above.GroupKind() != Deployments() {
		return of, err
	}
	return above, nil
}

// Above returns the controller of a workload; false where there is none, or the metadata of the workload is not in the
// cache.
func (w *Finder) Above(ctx context.Context, of Workload) (Workload, bool, error) {
	object, err := w.metadata(ctx, of)
	if err != nil || object == nil {
		return Workload{}, false, err
	}
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return Workload{}, false, nil
	}
	return Of(of.Namespace, owner), true, nil
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
	_, ok := w.watched[of.GroupKind()]
	return ok
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
