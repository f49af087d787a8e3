package workloadspread

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

// Kind is that of WorkloadSpreads.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion.WithKind("WorkloadSpread") }

// Index has the WorkloadSpreads of the cluster.
type Index struct{ *stored.Index[entry] }

type entry struct {
	spread *subset.Spread
	// malformed is why the spec cannot be decoded.
	malformed error
	// target is empty where the WorkloadSpread terminates, or has no target.
	target pub.Target
}

// Stored implements groupcommit.State.
func (e entry) Stored() client.Object { return e.spread }

// NewIndex returns an empty index with a clock.
func NewIndex(now func() time.Time) *Index { return &Index{stored.NewIndex(decode, now)} }

// KindOf returns the kind of the target of a WorkloadSpread; an empty one where it has none.
func KindOf(ws *subset.Spread) schema.GroupKind {
	target, _ := subset.TargetOf(ws)
	return schema.GroupKind{Group: target.Group, Kind: target.Kind}
}

func decode(raw *unstructured.Unstructured) (entry, error) {
	ws, malformed, err := stored.Decode[subset.Spread](raw)
	if err != nil {
		return entry{}, err
	}
	e := entry{spread: ws, malformed: malformed}
	if target, ok := subset.TargetOf(ws); ok && ws.DeletionTimestamp == nil {
		e.target = target
	}
	return e, nil
}

// Read returns a WorkloadSpread, nil where there is none, and why its spec cannot be decoded.
func (x *Index) Read(name types.NamespacedName) (ws *subset.Spread, malformed error) {
	e, _ := x.Find(name)
	return e.spread, e.malformed
}

// Named returns a WorkloadSpread; nil where there is none.
func (x *Index) Named(name types.NamespacedName) *subset.Spread {
	ws, _ := x.Read(name)
	return ws
}

// All returns the WorkloadSpreads of a namespace by name.
func (x *Index) All(namespace string) (all []*subset.Spread) {
	for _, e := range x.In(namespace) {
		all = append(all, e.spread)
	}
	return all
}

// Of returns the WorkloadSpreads of a target by name.
func (x *Index) Of(namespace string, target pub.Target) (all []*subset.Spread) {
	for _, e := range x.In(namespace) {
		if e.target == target {
			all = append(all, e.spread)
		}
	}
	return all
}
