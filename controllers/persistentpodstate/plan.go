package persistentpodstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass over a name is to do. All of it follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	generating *generating
	// records is what is done about the records, once the PersistentPodState is as its workload asks for. It is that of
	// the observed PersistentPodState before.
	records podstate.Pass
	// needsNodes means that records is not known without all nodes.
	needsNodes bool
	// reported means that the pass has come to the status, and status writes it; nil where it stays the same.
	reported bool
	status   pass
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{snapshot: s, generating: &generating{snapshot: s}}
	if s.hasRecords(s.generation.State) {
		p.record(s.generation.State)
	}
	var err error
	p.generating.write, err = s.generate()
	return p, err
}

// kind is that of PersistentPodStates.
func kind() stored.Kind { return stored.Kind{GVK: podstates.Kind()} }

// pass is all that is written: the PersistentPodState itself, its status, and then the deletion of pods that wait for
// labels which no node has, so that their workload creates them elsewhere. The status releases the labels first.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.generating, nil }, Required: true},
		step{Plan: p.report, Required: true},
		step{Plan: p.recreate},
	)
}

// hasRecords reports whether a PersistentPodState has records to look at.
func (s *snapshot) hasRecords(state *podstate.State) bool {
	return s.generation.Action != podstate.Delete && state != nil && state.DeletionTimestamp == nil && s.unsupported == ""
}

// record decides about the records of a PersistentPodState.
func (p *plan) record(state *podstate.State) {
	in := p.input
	in.State = state
	in.Node = func(name string) *corev1.Node { return p.nodes[name] }
	in.Nodes = func() []*corev1.Node {
		p.needsNodes = p.needsNodes || !p.hasNodes
		return p.allNodes
	}
	p.records = podstate.Plan(in)
}

func (p *plan) recreate() (pass, error) {
	if !p.reported {
		return nil, nil
	}
	return driver.Writes(write.Deletions(p.records.Stuck)...), nil
}

// generate returns the first write of the PersistentPodState that the workloads of the name ask for; nil for none.
func (s *snapshot) generate() (*write.Write, error) {
	switch s.generation.Action {
	case podstate.Create:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.generation.State)
		if err != nil {
			return nil, fmt.Errorf("convert PersistentPodState: %w", err)
		}
		raw := &unstructured.Unstructured{Object: content}
		raw.SetGroupVersionKind(podstates.Kind())
		unstructured.RemoveNestedField(raw.Object, "status")
		return &write.Write{Verb: write.Create, Object: raw}, nil
	case podstate.Update:
		return kind().Update(s.state, s.generation.State)
	case podstate.Delete:
		return s.question(), nil
	case podstate.Nothing, podstate.Occupied:
	}
	return nil, nil
}

// question reads the workload whose annotations no longer ask for the PersistentPodState. The cache of a new
// leader may show those of an earlier time, and the records cannot be restored.
func (s *snapshot) question() *write.Write {
	workload := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name.Namespace, Name: s.generation.Owner.Metadata.Name,
	}}
	workload.SetGroupVersionKind(s.generation.Owner.Kind)
	return &write.Write{Verb: write.Get, Object: workload}
}

// deletion returns the write that deletes the PersistentPodState, where the workload does not ask for it.
func (s *snapshot) deletion(workload write.Object) []*write.Write {
	live := podstate.Asker{Kind: s.generation.Owner.Kind, Metadata: metadataOf(workload)}
	if podstate.Generate([]podstate.Asker{live}, s.state).Action != podstate.Delete {
		return nil // the event of the change brings the next pass
	}
	raw := kind().Named(s.name)
	raw.SetUID(s.state.UID)
	return []*write.Write{{Verb: write.Delete, Object: raw}}
}

// generating is the pass of one write, or of a read of the workload and a deletion. After the answer the snapshot has
// the PersistentPodState as it is now.
type generating struct {
	*snapshot

	// write is nil where the PersistentPodState is as it should be.
	write *write.Write
	// invalid is why the API server rejects what the annotations ask for, and updated means that it accepted an update.
	invalid error
	updated bool
	failed  error
}

// Next returns the write.
func (g *generating) Next() []*write.Write {
	w := g.write
	if g.write = nil; w == nil {
		return nil
	}
	return []*write.Write{w}
}

// Answer takes what the API server made of the PersistentPodState.
func (g *generating) Answer(_ time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	switch {
	case w.Verb == write.Get && apierrors.IsNotFound(err): // garbage collection deletes the PersistentPodState
	case w.Verb == write.Get && err == nil:
		return g.deletion(answer)
	case w.Verb == write.Delete && (err == nil || write.IsOutdated(err)):
		g.state = nil
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err): // its event brings the next pass
	case w.Verb == write.Patch && apierrors.IsInvalid(err):
		g.invalid = err // the stored one stays in force
	case err != nil:
		if apierrors.IsInvalid(err) { // a change of the workload, or of what stands in the way, brings the next pass
			g.invalid = err
		}
		verb := map[write.Verb]string{
			write.Create: "create", write.Patch: "update", write.Delete: "delete", write.Get: "read the workload of",
		}[w.Verb]
		g.failed = fmt.Errorf("%s PersistentPodState: %w", verb, err)
	default:
		g.updated = w.Verb == write.Patch
		if raw, is := answer.(*unstructured.Unstructured); is {
			g.failed = g.decode(raw)
		}
	}
	return nil
}

// Err returns what failed.
func (g *generating) Err() error { return g.failed }

// Notes returns none.
func (*generating) Notes() []note.Note { return nil }

// RequeueAfter returns 0: an event brings the next pass.
func (*generating) RequeueAfter() time.Duration { return 0 }
