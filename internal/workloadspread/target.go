package workloadspread

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Targets reads the targets of WorkloadSpreads.
type Targets struct {
	// Finder reads replicas by the scale of a workload.
	Finder *replicas.Finder
	// Live reads past the cache: Jobs, and workloads with targetFilter.replicasPathList.
	Live client.Reader
	// Kinds are the further kinds that the installation allows; nil for none.
	Kinds *Kinds
	// Start watches a kind of targets, before a target is read first; nil watches none. A kind whose watch has started may
	// be started again after the failure of another one.
	Start func(schema.GroupVersionKind) error

	mu      sync.Mutex
	watched bool
}

// Jobs is the kind of Jobs, which have no scale.
func Jobs() schema.GroupKind { return schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"} }

// watch starts the watches of targets, and declares the kinds whose metadata is read from the cache, once.
func (t *Targets) watch() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched {
		return nil
	}
	for _, kind := range subset.Targets() {
		mapping, err := t.Finder.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", kind, err)
		}
		if kind != Jobs() {
			t.Finder.Watch(kind, mapping.GroupVersionKind)
		}
		if t.Start == nil {
			continue
		}
		if err := t.Start(mapping.GroupVersionKind); err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	t.watched = true
	return nil
}

// Target is a target as it was read.
type Target struct {
	UID types.UID
	// Gone reports that the target does not exist, or terminates.
	Gone bool
	// Base is what percentages refer to.
	Base subset.Base
	// Selector selects the pods of a target of a kind without owner references on its pods.
	Selector string
	// Unwatched reports that events may not announce each change: of a further kind, or at paths.
	Unwatched bool
	// Fault is why the replicas at targetFilter.replicasPathList, or at the path of a further kind, cannot be read.
	Fault error
}

// Read reads the target of a WorkloadSpread.
func (t *Targets) Read(ctx context.Context, ws *subset.Spread) (Target, error) {
	name, is := subset.TargetOf(ws)
	if !is {
		return Target{Gone: true}, nil
	}
	of := replicas.Workload{Namespace: ws.Namespace, Target: name}
	var paths []string
	switch f := ws.Spec.TargetFilter; {
	case f != nil && len(f.ReplicasPathList) > 0:
		paths = f.ReplicasPathList
	case !BuiltIn(of.GroupKind()):
		if path := t.Kinds.Read(ctx).Paths[of.GroupKind()]; path != "" {
			paths = []string{path}
		}
	}
	if err := t.watch(); err != nil {
		return Target{}, err
	}
	if of.GroupKind() == Jobs() || len(paths) > 0 {
		return t.read(ctx, of, paths)
	}
	found, err := t.Finder.Find(ctx, of)
	if err != nil {
		return Target{}, err
	}
	return Target{
		UID:       found.UID,
		Gone:      found.Gone,
		Base:      subset.Base{Replicas: found.Replicas, Unknown: found.Unknown},
		Selector:  found.Selector,
		Unwatched: found.Unwatched,
	}, nil
}

// read reads the whole target live.
func (t *Targets) read(ctx context.Context, of replicas.Workload, paths []string) (Target, error) {
	raw, err := t.live(ctx, of)
	if apierrors.IsForbidden(err) {
		return Target{Base: subset.Base{Unknown: true}, Unwatched: true, Fault: err}, nil
	}
	if err != nil || raw == nil || raw.GetDeletionTimestamp() != nil {
		return Target{Gone: err == nil}, err
	}
	target := Target{UID: raw.GetUID(), Unwatched: len(paths) > 0}
	if len(paths) > 0 {
		n, err := subset.ReplicasAt(raw.Object, paths)
		target.Base, target.Fault = subset.Base{Replicas: n, Unknown: err != nil}, err
		return target, nil
	}
	n, is, err := unstructured.NestedInt64(raw.Object, "spec", "parallelism")
	if !is {
		n = 1
	}
	target.Base = subset.Base{Replicas: int32(min(n, 1<<30)), Unknown: err != nil}
	return target, nil
}

// live reads a workload; nil where it does not exist.
func (t *Targets) live(ctx context.Context, of replicas.Workload) (*unstructured.Unstructured, error) {
	mapping, err := t.Finder.Mapper.RESTMapping(of.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", of.GroupKind(), err)
	}
	raw := stored.Untyped(mapping.GroupVersionKind)
	err = t.Live.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, raw)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
	}
	return raw, nil
}

// HasCosts reports whether the pods of a WorkloadSpread get deletion costs, which the workloads of few kinds heed.
func HasCosts(ws *subset.Spread) bool {
	switch KindOf(ws) {
	case replicas.Deployments(), replicas.ReplicaSets(), schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}:
		return true
	}
	return false
}

func isStatefulSet(ws *subset.Spread) bool { return KindOf(ws).Kind == "StatefulSet" }

// limits returns the limits of the subsets. The target is read only for percentages.
func (t *Targets) limits(ctx context.Context, ws *subset.Spread) ([]int32, error) {
	base := subset.Base{}
	if subset.NeedsBase(ws.Spec.Subsets) {
		target, err := t.Read(ctx, ws)
		if err != nil {
			return nil, err
		}
		base = target.Base
	}
	limits, _ := subset.Limits(ws.Spec.Subsets, base)
	return limits, nil
}
