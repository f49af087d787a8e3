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
}

// filed is a set in the index.
type filed struct {
	set *sidecar.Set
	// invalid is why the set has only its selectors.
	invalid error
	// unread reports that no selector can be read. Such a set would select all pods: see the package scope.
	unread bool
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{sets: map[string]*filed{}} }

// Put files a set in place of the one of its name. The set must not be changed afterwards. An error reports what of it
// cannot be read; the set is filed all the same, for the pods that it may select.
func (x *Index) Put(object *appsv1beta1.SidecarSet) error { return x.put(object, nil) }

// PutInvalid files a set whose selectors alone can be read. A pod that the set selects is rejected.
func (x *Index) PutInvalid(object *appsv1beta1.SidecarSet, why error) { _ = x.put(object, why) }

func (x *Index) put(object *appsv1beta1.SidecarSet, invalid error) error {
	set, fault := sidecar.Parse(object)
	selected := scope.SelectionOf(object)
	reads := selected.Read()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sets[object.Name] = &filed{set: set, invalid: invalid, unread: !reads.Whole && !reads.Bounded()}
	return fault
}

// Delete removes a set.
func (x *Index) Delete(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.sets, name)
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

// Candidates returns the sets that may select a pod with these labels, in no order. It compares the labels with the
// selector of each set, which takes less than 0.2 ms for a thousand sets.
func (x *Index) Candidates(podLabels map[string]string) []*sidecar.Set {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*sidecar.Set
	for _, f := range x.sets {
		if !f.unread && f.set.MayMatch(podLabels) {
			found = append(found, f.set)
		}
	}
	return found
}
