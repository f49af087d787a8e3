package pod

import (
	"sync"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Index has the SidecarSets of the cluster, parsed. It is safe for concurrent use.
type Index struct {
	mu   sync.RWMutex
	sets map[string]*filed
	// by has the sets by one label that they require, and under the zero label those that require none.
	by map[label]map[string]*filed
}

type label struct{ key, value string }

// filed is a set in the index.
type filed struct {
	set *sidecar.Set
	// invalid is why the set has only its selectors.
	invalid error
	// unread reports that no selector can be read. Such a set would select all pods: see the package scope.
	unread bool
	// under is a label that the set requires.
	under label
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{sets: map[string]*filed{}, by: map[label]map[string]*filed{}} }

// Put files a set in place of the one of its name. The set must not be changed afterwards. An error reports which part
// of it cannot be read; the set is filed all the same, for the pods that it may select.
func (x *Index) Put(object *appsv1beta1.SidecarSet) error { return x.put(object, nil) }

// PutInvalid files a set whose selectors alone can be read. A pod that the set selects is rejected.
func (x *Index) PutInvalid(object *appsv1beta1.SidecarSet, why error) { _ = x.put(object, why) }

func (x *Index) put(object *appsv1beta1.SidecarSet, invalid error) error {
	set, fault := sidecar.Parse(object)
	selected := scope.SelectionOf(object)
	reads := selected.Read()
	f := &filed{set: set, invalid: invalid, unread: !reads.Whole && !reads.Bounded(), under: requiredBy(object)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(object.Name)
	if x.by[f.under] == nil {
		x.by[f.under] = map[string]*filed{}
	}
	x.sets[object.Name], x.by[f.under][object.Name] = f, f
	return fault
}

// requiredBy returns a label without which a set selects no pod; the zero label where there is none.
func requiredBy(set *appsv1beta1.SidecarSet) label {
	if s := set.Spec.Selector; s != nil {
		for key, value := range s.MatchLabels {
			return label{key, value}
		}
	}
	return label{}
}

// Delete removes a set.
func (x *Index) Delete(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
}

func (x *Index) remove(name string) {
	f := x.sets[name]
	if f == nil {
		return
	}
	delete(x.sets, name)
	if delete(x.by[f.under], name); len(x.by[f.under]) == 0 {
		delete(x.by, f.under)
	}
}

// has reports whether the index has a set in the state of a mark, or in a later one.
func (x *Index) has(mark scope.Mark) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := x.sets[mark.Set]
	return f != nil && mark.In(f.set.Object())
}

// usable returns an error for a set that has only its selectors.
func (x *Index) usable(sets []*sidecar.Set) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, set := range sets {
		if f := x.sets[set.Name()]; f != nil && f.set.Object().UID == set.Object().UID && f.invalid != nil {
			return &sidecar.FieldError{Set: set.Name(), Field: "spec", Err: f.invalid}
		}
	}
	return nil
}

// Candidates returns the sets that may select a pod with these labels, in no order.
func (x *Index) Candidates(podLabels map[string]string) []*sidecar.Set {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*sidecar.Set
	add := func(under label) {
		for _, f := range x.by[under] {
			if !f.unread && f.set.MayMatch(podLabels) {
				found = append(found, f.set)
			}
		}
	}
	for key, value := range podLabels {
		add(label{key, value})
	}
	add(label{})
	return found
}
