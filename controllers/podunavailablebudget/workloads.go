package podunavailablebudget

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
	// foreignPeriod is how often a workload of a kind that is not watched is read.
	foreignPeriod = time.Minute
	// maxForeign bounds how many workloads of such kinds are read for one budget. The replicas of the others are unknown.
	maxForeign = 100
	// maxMemo bounds how many answers are kept.
	maxMemo = 10000
)

// workloads reads how many replicas workloads want.
type workloads struct {
	cached, live client.Reader
	scales       client.Client
	mapper       meta.RESTMapper
	now          func() time.Time

	mu sync.Mutex
	// watched are the kinds whose metadata is in the cache.
	watched map[schema.GroupKind]schema.GroupVersionKind
	sizes   map[types.UID]size
	foreign map[workload]answer
}

// workload is one of a namespace. The UID is empty where only the name is given.
type workload struct {
	namespace string
	pub.Target
	uid types.UID
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
	found
	at time.Time
}

// found is a workload as it is.
type found struct {
	pub.Workload

	// selector of its pods, where its scale has one.
	selector string
	// foreign means that no event reports a change.
	foreign bool
}

// reference is a workload that an object refers to.
func reference(namespace string, ref *metav1.OwnerReference) workload {
	gv, _ := schema.ParseGroupVersion(ref.APIVersion)
	return workload{namespace, pub.Target{Group: gv.Group, Kind: ref.Kind, Name: ref.Name}, ref.UID}
}

func (w workload) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: w.Group, Kind: w.Kind}
}

// top returns the workload that is scaled: the Deployment of a ReplicaSet, else the workload itself.
func (w *workloads) top(ctx context.Context, of workload) (workload, error) {
	if of.groupKind() != replicaSets() {
		return of, nil
	}
	set, err := w.metadata(ctx, of)
	if err != nil || set == nil {
		return of, err
	}
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
		if above := reference(of.namespace, owner); above.groupKind() == deployments() {
			return above, nil
		}
	}
	return of, nil
}

// metadata reads a workload of a kind that is watched; nil where it does not exist.
func (w *workloads) metadata(ctx context.Context, of workload) (*metav1.PartialObjectMetadata, error) {
	w.mu.Lock()
	gvk, watched := w.watched[of.groupKind()]
	w.mu.Unlock()
	if !watched {
		return nil, nil
	}
	object, err := stored.Metadata(ctx, w.cached, gvk, types.NamespacedName{Namespace: of.namespace, Name: of.Name})
	if object == nil || of.uid != "" && object.UID != of.uid {
		return nil, err
	}
	return object, nil
}

// find returns a workload. One that does not exist or terminates is gone.
func (w *workloads) find(ctx context.Context, of workload) (found, error) {
	w.mu.Lock()
	gvk, watched := w.watched[of.groupKind()]
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
			return found{}, err
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

// watch declares that the metadata of a kind is in the cache.
func (w *workloads) watch(kind schema.GroupKind, gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = map[schema.GroupKind]schema.GroupVersionKind{}
	}
	w.watched[kind] = gvk
}

// isWatched reports whether the metadata of a workload is in the cache.
func (w *workloads) isWatched(of workload) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, is := w.watched[of.groupKind()]
	return is
}

// replicaSetsOf returns the UIDs of the ReplicaSets of a Deployment, sorted.
func (w *workloads) replicaSetsOf(ctx context.Context, namespace string, deployment types.UID) ([]types.UID, error) {
	w.mu.Lock()
	gvk := w.watched[replicaSets()]
	w.mu.Unlock()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := w.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
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

func gone(of workload) found {
	return found{Workload: pub.Workload{UID: of.uid, Gone: true}}
}

func sized(object *metav1.PartialObjectMetadata, s size) found {
	return found{Workload: pub.Workload{UID: object.UID, Replicas: s.replicas, Unknown: s.unknown}, selector: s.selector}
}

// size reads the scale of a workload. The replicas of one without a scale are unknown.
func (w *workloads) size(ctx context.Context, of *metav1.PartialObjectMetadata) (size, error) {
	parent := stored.Untyped(of.GroupVersionKind())
	parent.SetNamespace(of.Namespace)
	parent.SetName(of.Name)
	scale := stored.Untyped(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	s := size{generation: of.Generation}
	switch err := w.scales.SubResource("scale").Get(ctx, parent, scale); {
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
func (w *workloads) findForeign(ctx context.Context, of workload) (found, error) {
	w.mu.Lock()
	known, ok := w.foreign[of]
	w.mu.Unlock()
	if ok && w.now().Before(known.at.Add(foreignPeriod)) {
		return known.found, nil
	}
	is, err := w.read(ctx, of)
	if err != nil {
		return found{}, err
	}
	is.foreign = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.foreign == nil || len(w.foreign) >= maxMemo {
		w.foreign = map[workload]answer{}
	}
	w.foreign[of] = answer{is, w.now()}
	return is, nil
}

// read reads a workload live. One of a kind that is not served, not namespaced, or that the controller may not read, has unknown replicas.
func (w *workloads) read(ctx context.Context, of workload) (found, error) {
	unknown := found{Workload: pub.Workload{UID: of.uid, Unknown: true}}
	mapping, err := w.mapper.RESTMapping(of.groupKind())
	switch {
	case meta.IsNoMatchError(err):
		return unknown, nil
	case err != nil:
		return found{}, fmt.Errorf("look up %s: %w", of.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return unknown, nil
	}
	object, err := stored.Metadata(ctx, w.live, mapping.GroupVersionKind, types.NamespacedName{Namespace: of.namespace, Name: of.Name})
	switch {
	case apierrors.IsForbidden(err):
		object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: of.Name, UID: of.uid}}
	case err != nil:
		return found{}, err
	case object == nil || object.DeletionTimestamp != nil || of.uid != "" && object.UID != of.uid:
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

func selectorOf(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil || text == "" || selector.Empty() {
		return nil
	}
	return selector
}

func deployments() schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: "Deployment"} }
func replicaSets() schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} }
