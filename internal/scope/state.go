package scope

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// What one namespace may take up in the entries. A namespace whose PersistentPodStates take more has all of its pods
// sent, so that its user cannot widen the entries of others.
const (
	mostStates       = 128
	mostStateLetters = 8 << 10
)

// States is the source of the step that steers pods back to where they were. A pod whose PersistentPodState has a
// required topology is not created while no replica answers; with a preferred topology alone the pod is created
// without.
func States() Source {
	return Source{
		Step: "place", Kind: podstates.Kind(), Contribute: func(objects []*unstructured.Unstructured) Contribution {
			by := map[string][]*podstate.State{}
			for _, raw := range objects {
				if s := stored.Whole[podstate.State](raw); s != nil && s.DeletionTimestamp == nil {
					by[s.Namespace] = append(by[s.Namespace], s)
				}
			}
			var closed, open owners
			for _, namespace := range slices.Sorted(maps.Keys(by)) {
				closed.add(namespace, by[namespace], func(s *podstate.State) bool {
					return s.Spec.RequiredPersistentTopology != nil
				})
				open.add(namespace, by[namespace], func(s *podstate.State) bool { return s.Spec.RequiredPersistentTopology == nil })
			}
			return Contribution{Lists: append(closed.lists(false), open.lists(true)...)}
		},
	}
}

// owners are the controllers of pods.
type owners struct {
	// names are namespace/kind/name.
	names []string
	// whole are the namespaces whose pods are all sent.
	whole []string
}

// add adds the targets of those PersistentPodStates of a namespace that a condition holds for.
func (o *owners) add(namespace string, all []*podstate.State, is func(*podstate.State) bool) {
	var names []string
	letters := 0
	for _, s := range all {
		if t, parsed := podstate.TargetOf(s); parsed && is(s) {
			names = append(names, namespace+"/"+t.Kind+"/"+t.Name)
			letters += len(t.Kind) + len(t.Name)
		}
	}
	switch {
	case len(names) == 0:
	case len(names) > mostStates || letters > mostStateLetters:
		o.whole = append(o.whole, namespace)
	default:
		o.names = append(o.names, names...)
	}
}

func (o *owners) lists(ignore bool) []List {
	var all []List
	for _, l := range []List{
		{Value: "request.namespace", Of: sorted(o.whole), Ignore: ignore},
		{Before: controlledIn("object"), Value: byOwner, After: "))", Of: sorted(o.names), Ignore: ignore},
	} {
		if len(l.Of) > 0 {
			all = append(all, l)
		}
	}
	return all
}
