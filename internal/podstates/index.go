package podstates

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Kind is that of PersistentPodStates.
func Kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("PersistentPodState") }

// The indices, whose values are a target, the name of a node, and the empty text.
const (
	byTarget  = "target"
	byNode    = "node"
	byMissing = "missing"
)

// Index has the PersistentPodStates of a cluster. It is safe for concurrent use. What it returns is shared, and only
// read.
type Index struct{ store toolscache.ThreadSafeStore }

// NewIndex returns an empty index.
func NewIndex() *Index {
	of := func(keys func(*podstate.State) []string) toolscache.IndexFunc {
		return func(o any) ([]string, error) {
			if state, ok := o.(*podstate.State); ok {
				return keys(state), nil
			}
			return nil, nil
		}
	}
	return &Index{toolscache.NewThreadSafeStore(toolscache.Indexers{
		byTarget: of(targetKeys), byNode: of(nodeKeys), byMissing: of(missingKeys),
	}, toolscache.Indices{})}
}

// targetKeys returns no key for a PersistentPodState that terminates.
func targetKeys(s *podstate.State) []string {
	target, ok := podstate.TargetOf(s)
	if !ok || s.DeletionTimestamp != nil {
		return nil
	}
	return []string{targetKey(s.Namespace, target)}
}

func targetKey(namespace string, t podstate.Target) string {
	return strings.Join([]string{namespace, t.Group, t.Kind, t.Name}, "/")
}

func nodeKeys(s *podstate.State) []string {
	var nodes []string
	for _, r := range s.Status.PodStates {
		nodes = append(nodes, r.NodeName)
	}
	return nodes
}

func missingKeys(s *podstate.State) []string {
	for _, r := range s.Status.PodStates {
		if r.MissingSince != nil {
			return []string{""}
		}
	}
	return nil
}

// Put files an object in place of the one of its name. One that cannot be decoded is left out.
func (x *Index) Put(raw *unstructured.Unstructured) error {
	name := types.NamespacedName{Namespace: raw.GetNamespace(), Name: raw.GetName()}
	state, malformed, err := stored.Decode[podstate.State](raw)
	if err := errors.Join(malformed, err); err != nil {
		x.Delete(name)
		return err
	}
	x.store.Update(name.String(), state)
	return nil
}

// Delete removes an object.
func (x *Index) Delete(name types.NamespacedName) { x.store.Delete(name.String()) }

// Of returns the names of the PersistentPodStates of a workload, in no order.
func (x *Index) Of(namespace string, target podstate.Target) []types.NamespacedName {
	return names(x.states(byTarget, targetKey(namespace, target)))
}

// On returns the names of the PersistentPodStates with records of a node, in no order.
func (x *Index) On(node string) []types.NamespacedName { return names(x.states(byNode, node)) }

// Missing returns the names of the PersistentPodStates with records whose required labels no node has, in no order.
func (x *Index) Missing() []types.NamespacedName { return names(x.states(byMissing, "")) }

// First returns the PersistentPodState that steers the pods of an owner: the first by name; nil where there is none.
func (x *Index) First(namespace string, owner *metav1.OwnerReference) *podstate.State {
	target, ok := podstate.Refer(owner.APIVersion, owner.Kind, owner.Name)
	if !ok {
		return nil
	}
	var first *podstate.State
	for _, s := range x.states(byTarget, targetKey(namespace, target)) {
		if first == nil || s.Name < first.Name {
			first = s
		}
	}
	return first
}

func (x *Index) states(index, key string) []*podstate.State {
	found, _ := x.store.ByIndex(index, key) // its error is an index that does not exist
	states := make([]*podstate.State, 0, len(found))
	for _, o := range found {
		if s, ok := o.(*podstate.State); ok {
			states = append(states, s)
		}
	}
	return states
}

func names(states []*podstate.State) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(states))
	for _, s := range states {
		all = append(all, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	return all
}
