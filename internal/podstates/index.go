package podstates

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Kind is that of PersistentPodStates.
func Kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("PersistentPodState") }

// Index has the PersistentPodStates of a cluster. It is safe for concurrent use. What it returns is shared, and only
// read.
type Index struct {
	mu      sync.RWMutex
	named   map[types.NamespacedName]*podstate.State
	targets map[target][]*podstate.State // by name
	nodes   map[string]map[types.NamespacedName]bool
	missing map[types.NamespacedName]bool
}

type target struct {
	namespace string
	podstate.Target
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		named: map[types.NamespacedName]*podstate.State{}, targets: map[target][]*podstate.State{},
		nodes: map[string]map[types.NamespacedName]bool{}, missing: map[types.NamespacedName]bool{},
	}
}

// Put files an object in place of the one of its name. One that cannot be decoded is left out.
func (x *Index) Put(raw *unstructured.Unstructured) error {
	state, malformed, err := stored.Decode[podstate.State](raw)
	if err == nil {
		err = malformed
	}
	name := types.NamespacedName{Namespace: raw.GetNamespace(), Name: raw.GetName()}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
	if err != nil {
		return err
	}
	x.named[name] = state
	if at, is := targetOf(state); is {
		all := append(slices.Clone(x.targets[at]), state)
		slices.SortFunc(all, func(a, b *podstate.State) int { return strings.Compare(a.Name, b.Name) })
		x.targets[at] = all
	}
	for _, r := range state.Status.PodStates {
		if x.nodes[r.NodeName] == nil {
			x.nodes[r.NodeName] = map[types.NamespacedName]bool{}
		}
		x.nodes[r.NodeName][name] = true
		if r.MissingSince != nil {
			x.missing[name] = true
		}
	}
	return nil
}

// targetOf returns the target of a PersistentPodState that does not terminate.
func targetOf(s *podstate.State) (target, bool) {
	t, is := podstate.TargetOf(s)
	return target{s.Namespace, t}, is && s.DeletionTimestamp == nil
}

// Delete removes an object.
func (x *Index) Delete(name types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
}

func (x *Index) remove(name types.NamespacedName) {
	state := x.named[name]
	if state == nil {
		return
	}
	delete(x.named, name)
	delete(x.missing, name)
	if at, is := targetOf(state); is {
		rest := slices.DeleteFunc(slices.Clone(x.targets[at]), func(s *podstate.State) bool { return s.Name == name.Name })
		if x.targets[at] = rest; len(rest) == 0 {
			delete(x.targets, at)
		}
	}
	for _, r := range state.Status.PodStates {
		if delete(x.nodes[r.NodeName], name); len(x.nodes[r.NodeName]) == 0 {
			delete(x.nodes, r.NodeName)
		}
	}
}

// Of returns the PersistentPodStates of a workload, by name.
func (x *Index) Of(namespace string, of podstate.Target) []*podstate.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.targets[target{namespace, of}]
}

// First returns the PersistentPodState that steers the pods of an owner: the first by name; nil where there is none.
func (x *Index) First(namespace string, owner *metav1.OwnerReference) *podstate.State {
	of, is := podstate.Refer(v1beta1.TargetReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
	if !is {
		return nil
	}
	if all := x.Of(namespace, of); len(all) > 0 {
		return all[0]
	}
	return nil
}

// On returns the names of the PersistentPodStates with records of a node, in no order.
func (x *Index) On(node string) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return keys(x.nodes[node])
}

// Missing returns the names of the PersistentPodStates with records whose required labels no node has, in no order.
func (x *Index) Missing() []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return keys(x.missing)
}

func keys(of map[types.NamespacedName]bool) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(of))
	for name := range of {
		all = append(all, name)
	}
	return all
}
