package stored

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Index holds the decoded objects of one kind: for each object the state of the cache, and that of a newer write or
// live read of this process. It is safe for concurrent use. Callers share the values, and must not change them.
type Index[T any] struct {
	decode func(*unstructured.Unstructured) (T, error)
	now    func() time.Time

	mu sync.RWMutex
	// namespaces holds the objects by namespace and name. It has no entry for an empty namespace.
	namespaces map[string]map[string]states[T]
}

// states holds the states of one object: cached from the cache, own from a write or live read of this process. own is
// empty once the cache is as new.
type states[T any] struct{ cached, own state[T] }

type state[T any] struct {
	name    string
	uid     types.UID
	version string
	value   T
	// at is when this process wrote or read the state. It is zero in a cached state.
	at time.Time
}

// NewIndex returns an empty index.
func NewIndex[T any](decode func(*unstructured.Unstructured) (T, error), now func() time.Time) *Index[T] {
	return &Index[T]{decode: decode, now: now, namespaces: map[string]map[string]states[T]{}}
}

// Put records the state that the cache shows. It drops the own state unless that is newer; it drops a newer one too if
// the cache went back. If the object cannot be decoded, Put removes the object and returns the error.
func (x *Index[T]) Put(raw *unstructured.Unstructured) error {
	namespace := raw.GetNamespace()
	next, err := x.read(raw)
	if err != nil {
		x.Delete(types.NamespacedName{Namespace: namespace, Name: next.name})
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.namespaces[namespace][next.name]
	own := was.own
	if own.uid != next.uid || !own.newer(next) || was.cached.newer(next) { // the last condition: etcd was restored
		own = state[T]{}
	}
	if x.namespaces[namespace] == nil {
		x.namespaces[namespace] = map[string]states[T]{}
	}
	x.namespaces[namespace][next.name] = states[T]{next, own}
	return nil
}

// Renew records a state that this process wrote or read live, and returns the decoded object. Reads return this state
// until the cache shows it, but for at most ledger.Patience: after a restore of etcd the cache may never show it. Renew
// does not add an object that the cache does not have.
func (x *Index[T]) Renew(raw *unstructured.Unstructured) (T, error) {
	next, err := x.read(raw)
	if err != nil {
		return next.value, err
	}
	next.at = x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.namespaces[raw.GetNamespace()]
	if was, ok := in[next.name]; ok && was.cached.uid == next.uid && next.newer(x.current(was)) {
		in[next.name] = states[T]{was.cached, next}
	}
	return next.value, nil
}

// current returns the own state while it is younger than ledger.Patience, and otherwise the cached state.
func (x *Index[T]) current(s states[T]) state[T] {
	if s.own.uid != "" && x.now().Sub(s.own.at) < ledger.Patience {
		return s.own
	}
	return s.cached
}

// read decodes an object. name, uid and version are set also with an error.
func (x *Index[T]) read(raw *unstructured.Unstructured) (state[T], error) {
	value, err := x.decode(raw)
	return state[T]{name: raw.GetName(), uid: raw.GetUID(), version: raw.GetResourceVersion(), value: value}, err
}

// newer reports whether a state is later than another one. Versions that cannot be compared are no later.
func (s state[T]) newer(than state[T]) bool {
	order, err := write.CompareVersions(s.version, than.version)
	return err == nil && order > 0
}

// Delete removes an object.
func (x *Index[T]) Delete(name types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.namespaces[name.Namespace], name.Name)
	if len(x.namespaces[name.Namespace]) == 0 {
		delete(x.namespaces, name.Namespace)
	}
}

// Find returns an object; false where there is none.
func (x *Index[T]) Find(name types.NamespacedName) (T, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found, ok := x.namespaces[name.Namespace][name.Name]
	return x.current(found).value, ok
}

// Any reports whether a namespace has an object.
func (x *Index[T]) Any(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.namespaces[namespace] != nil
}

// In returns the objects of a namespace by name.
func (x *Index[T]) In(namespace string) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	in := x.namespaces[namespace]
	all := make([]T, 0, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		all = append(all, x.current(in[name]).value)
	}
	return all
}
