package pod

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Index has the SidecarSets of the cluster by what they select: a lookup returns candidates of the namespace and the
// labels of a pod, and never all sets. It is safe for concurrent use.
type Index struct {
	mu     sync.RWMutex
	filed  map[string]*filed
	places map[string]*place
}

// filed is a set and where it is filed.
type filed struct {
	set *sidecar.Set
	// fault is what of the set cannot be read, and invalid why it has only its selectors.
	fault, invalid error

	places []string // namespaces, "" for all
	anchor anchor
}

// anchor is a label without which the set selects no pod; none without a key.
type anchor struct {
	key    string
	values []string // nil for any
}

// place has the sets of one namespace, or those of all. A pod gets each set at most once, because a set is filed under
// one label, of which a pod has one value.
type place struct {
	values map[label][]*filed
	keys   map[string][]*filed
	rest   []*filed
}

type label struct{ key, value string }

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{filed: map[string]*filed{}, places: map[string]*place{}}
}

// Put files a set in place of the one of its name. The set must not be changed afterwards. An error reports what of it
// cannot be read; the set is filed all the same, for the pods that it may select.
func (x *Index) Put(object *appsv1beta1.SidecarSet) error { return x.put(object, nil) }

// PutInvalid files a set whose selectors alone can be read. A pod that the set selects is rejected.
func (x *Index) PutInvalid(object *appsv1beta1.SidecarSet, why error) { _ = x.put(object, why) }

func (x *Index) put(object *appsv1beta1.SidecarSet, invalid error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if have := x.filed[object.Name]; have != nil && sameSet(have.set.Object(), object) {
		return have.fault
	}
	x.remove(object.Name)
	set, fault := sidecar.Parse(object)
	selected := scope.SelectionOf(object)
	reads := selected.Read()
	f := &filed{set: set, fault: fault, invalid: invalid}
	x.filed[object.Name] = f
	if reads.Never || !reads.Whole && !reads.Bounded() {
		return fault // it selects no pod, or would select all: see the package scope
	}
	f.places, f.anchor = namespacesOf(reads.Namespace), anchorOf(reads.Pod)
	for _, name := range f.places {
		if x.places[name] == nil {
			x.places[name] = &place{values: map[label][]*filed{}, keys: map[string][]*filed{}}
		}
		x.places[name].add(f)
	}
	return fault
}

// Delete removes a set.
func (x *Index) Delete(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
}

func (x *Index) remove(name string) {
	f := x.filed[name]
	if f == nil {
		return
	}
	delete(x.filed, name)
	for _, namespace := range f.places {
		if p := x.places[namespace]; p.remove(f) {
			delete(x.places, namespace)
		}
	}
}

// has reports whether the index has a set in the state of a mark, or in a later one.
func (x *Index) has(mark scope.Mark) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := x.filed[mark.Set]
	return f != nil && mark.In(f.set.Object())
}

// usable returns an error for a set that has only its selectors.
func (x *Index) usable(sets []*sidecar.Set) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, set := range sets {
		if f := x.filed[set.Name()]; f != nil && f.set == set && f.invalid != nil {
			return &sidecar.FieldError{Set: set.Name(), Field: "spec", Err: f.invalid}
		}
	}
	return nil
}

// Candidates returns the sets that might select the pod, in no order.
func (x *Index) Candidates(namespace string, podLabels map[string]string) []*sidecar.Set {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*sidecar.Set
	for _, name := range [...]string{"", namespace} {
		p := x.places[name]
		if p == nil {
			continue
		}
		for key, value := range podLabels {
			found = appendSets(found, p.values[label{key, value}])
			found = appendSets(found, p.keys[key])
		}
		found = appendSets(found, p.rest)
		if namespace == "" {
			break
		}
	}
	return found
}

func appendSets(to []*sidecar.Set, more []*filed) []*sidecar.Set {
	for _, f := range more {
		to = append(to, f.set)
	}
	return to
}

// change adds a set to the lists of its anchor, or removes it.
func (p *place) change(f *filed, change func([]*filed) []*filed) {
	switch a := f.anchor; {
	case a.key == "":
		p.rest = change(p.rest)
	case a.values == nil:
		setOrDelete(p.keys, a.key, change(p.keys[a.key]))
	default:
		for _, value := range a.values {
			at := label{a.key, value}
			setOrDelete(p.values, at, change(p.values[at]))
		}
	}
}

func (p *place) add(f *filed) {
	p.change(f, func(have []*filed) []*filed { return append(have, f) })
}

// remove reports whether no set is left.
func (p *place) remove(f *filed) bool {
	p.change(f, func(have []*filed) []*filed {
		return slices.DeleteFunc(have, func(other *filed) bool { return other == f })
	})
	return len(p.rest)+len(p.keys)+len(p.values) == 0
}

func setOrDelete[K comparable](m map[K][]*filed, key K, list []*filed) {
	if len(list) == 0 {
		delete(m, key)
		return
	}
	m[key] = list
}

// anchorOf returns the label of the fewest values.
func anchorOf(all labels.Requirements) anchor {
	var best anchor
	for i := range all {
		var a anchor
		switch all[i].Operator() { //nolint:exhaustive // the others need no label
		case selection.In, selection.Equals, selection.DoubleEquals:
			a = anchor{key: all[i].Key(), values: slices.Sorted(maps.Keys(all[i].Values()))}
		case selection.Exists:
			a = anchor{key: all[i].Key()}
		default:
			continue
		}
		if best.key == "" || better(a, best) {
			best = a
		}
	}
	return best
}

func better(a, b anchor) bool {
	if (a.values == nil) != (b.values == nil) {
		return a.values != nil
	}
	return cmp.Or(cmp.Compare(len(a.values), len(b.values)), cmp.Compare(a.key, b.key)) < 0
}

// namespacesOf returns the names of the only namespaces that can meet the requirements; one empty name for all.
func namespacesOf(all labels.Requirements) []string {
	for i := range all {
		if r := &all[i]; r.Key() == corev1.LabelMetadataName &&
			(r.Operator() == selection.In || r.Operator() == selection.Equals) {
			return slices.Sorted(maps.Keys(r.Values()))
		}
	}
	return []string{""}
}

// sameSet reports whether two states of a set are the same for pods: the status changes with every pod.
func sameSet(a, b *appsv1beta1.SidecarSet) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.Generation != 0 &&
		a.Status.LatestRevision == b.Status.LatestRevision && maps.Equal(a.Annotations, b.Annotations) &&
		maps.Equal(a.Labels, b.Labels)
}
