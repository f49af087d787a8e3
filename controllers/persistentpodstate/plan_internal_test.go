package persistentpodstate

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/write"
)

// What follows from the answer about the PersistentPodState itself.
func TestGenerating(t *testing.T) {
	group := schema.GroupResource{Group: "apps.kruise.io", Resource: "persistentpodstates"}
	invalid := apierrors.NewInvalid(schema.GroupKind{}, "db", nil)
	exists, missing := apierrors.NewAlreadyExists(group, "db"), apierrors.NewNotFound(group, "db")
	state := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "7"}}
	owner := &podstate.Asker{Kind: statefulSets()[0], Metadata: metav1.ObjectMeta{Name: "db", UID: "set"}}
	state.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner.Metadata, owner.Kind)}
	next := state.DeepCopy()
	next.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	for name, c := range map[string]struct {
		why            string
		action         podstate.Action
		verb           write.Verb
		answer         error
		there          bool
		invalid, fails bool
	}{
		"created":           {why: "the records follow", action: podstate.Create, verb: write.Create, there: true},
		"created meanwhile": {why: "its event follows", action: podstate.Create, verb: write.Create, answer: exists},
		"rejected": {
			why: "only the workload mends it", action: podstate.Create, verb: write.Create, answer: invalid,
			invalid: true, fails: true,
		},
		"an update": {why: "the records follow", action: podstate.Update, verb: write.Patch, there: true},
		"an update that is rejected": {
			why: "the stored one stays in force", action: podstate.Update, verb: write.Patch, answer: invalid,
			there: true, invalid: true,
		},
		"an update that is outdated": {
			why: "another pass decides", action: podstate.Update, verb: write.Patch,
			answer: apierrors.NewConflict(group, "db", errors.New("changed")), there: true, fails: true,
		},
		"deleted":       {why: "nothing is left to do", action: podstate.Delete, verb: write.Delete},
		"deleted twice": {why: "nothing is left to do", action: podstate.Delete, verb: write.Delete, answer: missing},
		"workload is gone": {
			why: "so will the PersistentPodState be", action: podstate.Delete, verb: write.Get, answer: missing, there: true,
		},
		"workload is not read": {
			why: "it is tried again", action: podstate.Delete, verb: write.Get, answer: errors.New("reset"),
			there: true, fails: true,
		},
		"not deleted": {
			why: "it is tried again", action: podstate.Delete, verb: write.Delete, answer: errors.New("reset"),
			there: true, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{name: key(state), unsupported: "a test"}
			s.generation = podstate.Generation{Action: c.action, State: next, Owner: owner}
			if c.action != podstate.Create {
				s.state = state
			}
			p, err := newPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			all := p.pass()
			writes := all.Next()
			if c.verb == write.Delete { // the workload is read before
				writes = all.Answer(time.Unix(0, 0), writes[0], &metav1.PartialObjectMetadata{ObjectMeta: owner.Metadata}, nil)
			}
			if len(writes) != 1 || writes[0].Verb != c.verb {
				t.Fatalf("%s: %v", c.why, writes)
			}
			var answer write.Object
			if raw := kind().Named(key(state)); c.answer == nil && c.verb != write.Delete {
				answer = raw
			}
			all.Answer(time.Unix(0, 0), writes[0], answer, c.answer)
			rejected := p.generating.invalid != nil
			if all.Next() != nil || (p.state != nil) != c.there || rejected != c.invalid || (all.Err() != nil) != c.fails {
				t.Errorf("%s: %v, invalid: %v, failed: %v", c.why, p.state, p.generating.invalid, all.Err())
			}
		})
	}
}

// All nodes are read only for a plan that looks for the labels of a node that is gone.
func TestNeedsNodes(t *testing.T) {
	state := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	state.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	record := v1beta1.PodState{NodeName: "n1", NodeTopologyLabels: map[string]string{"zone": "a"}}
	state.Status.PodStates = map[string]v1beta1.PodState{"db-0": record}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	for name, c := range map[string]struct {
		nodes map[string]*corev1.Node
		all   bool
		want  bool
	}{
		"the node is there":  {nodes: map[string]*corev1.Node{"n1": node}},
		"the node is gone":   {want: true},
		"all nodes are read": {all: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{name: key(state), state: state, nodes: c.nodes, hasNodes: c.all}
			s.generation = podstate.Generation{State: state}
			s.input.Workload.Unknown = true
			if p, err := newPlan(s); err != nil || p.needsNodes != c.want {
				t.Errorf("needs all nodes: %t, %v", p.needsNodes, err)
			}
		})
	}
}
