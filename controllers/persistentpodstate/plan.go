package persistentpodstate

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what one pass over a name is to do: its writes in their order. All of it follows from the snapshot.
type plan struct {
	// generate creates, updates or deletes the PersistentPodState; nil for none. The pass ends with it, unless the API
	// server rejects an update: the stored one then stays in force.
	generate *write.Write
	// status is the write of the records; nil where they stay the same.
	status *write.Write
	// stuck are pods to delete, so that their workload creates them elsewhere.
	stuck []*corev1.Pod
	notes []note.Note
	// requeueAfter is when to look again although nothing changes; zero for never.
	requeueAfter time.Duration
}

// recheck is when to look again at a kind that is not watched.
const recheck = time.Minute

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{}
	var err error
	if p.generate, err = s.generate(); err != nil {
		return nil, err
	}
	if s.generation.Action == podstate.Occupied {
		p.block(reasonOccupied, textOccupied)
	}
	if s.unsupported != "" {
		p.block(reasonUnsupported, "Kept all records as they are: "+s.unsupported)
		p.requeueAfter = recheck
	}
	if s.input.State == nil {
		return p, nil
	}
	records := podstate.Plan(s.input)
	p.stuck, p.requeueAfter = records.Stuck, records.RequeueAfter
	p.notes = append(p.notes, records.Notes...)
	return p, p.report(s.state, records.Status)
}

func (p *plan) block(code, text string) {
	p.notes = append(p.notes, note.Note{Level: note.Blocked, Code: code, Text: text})
}

// reject notes that the API server rejects what the annotations of a workload ask for.
func (p *plan) reject(err error) {
	p.block(reasonRejected, "The API server rejects the PersistentPodState that the annotations ask for: "+
		failure.BriefText(err.Error()))
}

// kind is that of PersistentPodStates.
func kind() stored.Kind { return stored.Kind{GVK: podstates.Kind()} }

// generate returns the write of the PersistentPodState that the workloads of the name ask for; nil for none.
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
		raw := kind().Named(s.name)
		raw.SetUID(s.state.UID)
		return &write.Write{Verb: write.Delete, Object: raw}, nil
	case podstate.Nothing, podstate.Occupied:
	}
	return nil, nil
}

// report adds the write of a status that has changed. The API server refuses a status that follows from an older
// object. A status that is too large to be stored is not written.
func (p *plan) report(state *podstate.State, status v1beta1.PersistentPodStateStatus) (err error) {
	next := *state
	next.Status = status
	required := map[string]any{"observedGeneration": status.ObservedGeneration}
	if p.status, err = stored.WriteStatusVersion(kind(), state, &next, required); p.status == nil {
		return err
	}
	text, err := json.Marshal(status)
	if len(text) > podstate.MostBytes {
		p.status, p.notes = nil, nil // they are about the records
		p.block(reasonTooLarge, "The records would take too much room; name fewer keys, or split the workload")
	}
	return err
}
