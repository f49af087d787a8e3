package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// updating is the input of a pass over pods that another controller creates.
func (s *server) updating(slots ...string) workload.Input {
	return workload.Input{
		Scale: scale.Input{
			Now: s.now, Slots: slots, UpdateOnly: true, UnavailableFirst: true, Limits: scale.Limits{MaxUnavailable: 1},
		},
		Instances: workload.Pods(s.all()),
		Update:    rev(s, "web-2", "web:2"), Current: rev(s, "web-1", "web:1"),
		Strategy: workload.InPlaceIfPossible, Policy: inplace.Policy{Relabel: inplace.RelabelLast},
		Evict: true, KeepState: true, IgnoreMarks: true,
	}
}

func notNow() error {
	return apierrors.NewTooManyRequests("the disruption budget needs 3 healthy pods", 7)
}

// TestUpdateOnly: a pass over the pods of another controller changes them in place or evicts them, and does no more.
func TestUpdateOnly(t *testing.T) {
	evictions := func(err error) func(*workload.Write) error {
		return func(w *workload.Write) error {
			if w.Verb == write.Delete || w.Verb == write.Create {
				return fmt.Errorf("%s is not expected", w)
			}
			if w.Verb == write.Evict {
				return err
			}
			return nil
		}
	}
	cases := map[string]struct {
		pods   func(*server)
		change func(*workload.Input)
		fails  error
		sent   []string
		notes  []string
		after  time.Duration
		failed bool
	}{
		"a refused eviction is a wait for as long as the API server suggests, and no other pod takes the turn": {
			change: func(in *workload.Input) {
				in.Strategy, in.Scale.Limits.MaxUnavailable = workload.Recreate, 2
			},
			fails: notNow(),
			sent:  []string{"Delete c", "Delete b"},
			notes: []string{scale.NoteUpdateLimited, workload.NoteNotEvicted, workload.NoteNotEvicted},
			after: 7 * time.Second,
		},
		"forbidden: another refusal is a failure": {
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			fails:  refused(),
			sent:   []string{"Delete c", "Delete b", "Delete a"},
			notes:  []string{scale.NoteUpdateLimited},
			failed: true,
		},
		"gone: a pod that is gone needs no eviction": {
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			fails:  apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "c"),
			sent:   []string{"Delete c"},
			notes:  []string{scale.NoteUpdateLimited},
		},
		"finished: the other controller deletes a pod that has finished": {
			pods:  func(s *server) { s.pods["a"].Status.Phase = corev1.PodFailed },
			notes: []string{scale.NoteUpdateLimited, scale.NoteWaitingForDeletion},
		},
		"the other controller deletes a pod that is too many, and the pass does not update it": {
			change: func(in *workload.Input) { in.Scale.Slots = []string{"a"} },
			sent:   []string{"Unready a", "Update a"},
		},
		"a pod without the readiness gate spends the budget until its node runs the change": {
			pods: func(s *server) {
				pod := s.pods["c"]
				pod.Spec.ReadinessGates = nil
				pod.Status.Conditions = pod.Status.Conditions[:2]
				s.run(s.updating("a", "b", "c"))
				s.sent = nil
			},
			notes: []string{scale.NoteUpdateLimited, inplace.NoteImage},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, ready("a", "web-1", "web:1"), ready("b", "web-1", "web:1"), ready("c", "web-1", "web:1"))
			if c.pods != nil {
				c.pods(s)
			}
			s.fails = evictions(c.fails)
			in := s.updating("a", "b", "c")
			if c.change != nil {
				c.change(&in)
			}
			pass := s.run(in)
			if d := cmp.Diff(c.sent, s.sent); d != "" {
				t.Errorf("%s", d)
			}
			var notes []string
			for _, n := range pass.Notes() {
				notes = append(notes, n.Code)
			}
			if d := cmp.Diff(c.notes, notes); d != "" {
				t.Errorf("notes: %s", d)
			}
			if got := pass.RequeueAfter(); got != c.after || (pass.Err() != nil) != c.failed {
				t.Errorf("after %v: %v", got, pass.Err())
			}
		})
	}
}
