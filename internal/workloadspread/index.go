package workloadspread

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

// Kind is that of WorkloadSpreads.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion.WithKind("WorkloadSpread") }

// Index has the WorkloadSpreads of the cluster by namespace and target. It is safe for concurrent use.
type Index struct {
	mu     sync.RWMutex
	places map[string]*place
}

// place has the WorkloadSpreads of one namespace.
type place struct {
	byName   map[string]*subset.Spread
	byTarget map[pub.Target][]*subset.Spread // by name
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{places: map[string]*place{}} }

// TargetOf returns the target of a WorkloadSpread without its version; false where it has none.
func TargetOf(ws *subset.Spread) (pub.Target, bool) {
	ref := ws.Spec.TargetReference
	if ref == nil {
		return pub.Target{}, false
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return pub.Target{Group: version.Group, Kind: ref.Kind, Name: ref.Name}, err == nil
}

// Put files a WorkloadSpread in place of the one of its name.
func (x *Index) Put(raw *unstructured.Unstructured) error {
	ws, _, err := stored.Decode[subset.Spread](raw)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name})
	in := x.places[ws.Namespace]
	if in == nil {
		in = &place{byName: map[string]*subset.Spread{}, byTarget: map[pub.Target][]*subset.Spread{}}
		x.places[ws.Namespace] = in
	}
	in.byName[ws.Name] = ws
	if target, is := TargetOf(ws); is && ws.DeletionTimestamp == nil {
		all := append(slices.Clone(in.byTarget[target]), ws)
		slices.SortFunc(all, func(a, b *subset.Spread) int { return strings.Compare(a.Name, b.Name) })
		in.byTarget[target] = all
	}
	return nil
}

// Delete removes a WorkloadSpread.
func (x *Index) Delete(name types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
}

func (x *Index) remove(name types.NamespacedName) {
	in := x.places[name.Namespace]
	if in == nil {
		return
	}
	ws := in.byName[name.Name]
	if ws == nil {
		return
	}
	delete(in.byName, name.Name)
	if target, is := TargetOf(ws); is {
		rest := slices.DeleteFunc(slices.Clone(in.byTarget[target]), func(other *subset.Spread) bool {
			return other.Name == ws.Name
		})
		if in.byTarget[target] = rest; len(rest) == 0 {
			delete(in.byTarget, target)
		}
	}
	if len(in.byName) == 0 {
		delete(x.places, name.Namespace)
	}
}

// Named returns a WorkloadSpread, which must not be changed; nil where there is none.
func (x *Index) Named(name types.NamespacedName) *subset.Spread {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if in := x.places[name.Namespace]; in != nil {
		return in.byName[name.Name]
	}
	return nil
}

// In returns the WorkloadSpreads of a namespace, in no order, which must not be changed.
func (x *Index) In(namespace string) []*subset.Spread {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if in := x.places[namespace]; in != nil {
		return slices.Collect(maps.Values(in.byName))
	}
	return nil
}

// Any reports whether a namespace has a WorkloadSpread.
func (x *Index) Any(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.places[namespace] != nil
}

// Of returns the WorkloadSpreads of a target by name, which must not be changed.
func (x *Index) Of(namespace string, target pub.Target) []*subset.Spread {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if in := x.places[namespace]; in != nil {
		return in.byTarget[target]
	}
	return nil
}

// Targets reports whether a WorkloadSpread of a namespace has a target of a kind that a condition holds for.
func (x *Index) Targets(namespace string, is func(schema.GroupKind) bool) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if in := x.places[namespace]; in != nil {
		for target := range in.byTarget {
			if is(schema.GroupKind{Group: target.Group, Kind: target.Kind}) {
				return true
			}
		}
	}
	return false
}
