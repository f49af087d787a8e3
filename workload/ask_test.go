package workload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// TestAsk: a pass asks once about all updates that begin, and begins those that the answer admits.
func TestAsk(t *testing.T) {
	admit := func(n int) error { return &workload.RefusedError{Admitted: n, Reason: "the budget is spent"} }
	for name, c := range map[string]struct {
		pods   func(*server)
		change func(*workload.Input)
		answer error
		// refusedBefore makes the API server refuse the update of this pod.
		refused string
		sent    []string
		asked   []string
		noted   string
		failed  string
	}{
		"all: one question covers all updates that begin": {
			sent:  []string{"Ask a", "Unready a", "Unready b", "Update a", "Update b"},
			asked: []string{"a b"},
		},
		"some: the first pods go on, the others wait": {
			answer: admit(1), sent: []string{"Ask a", "Unready a", "Update a"},
			asked: []string{"a b"}, noted: "b",
		},
		"more than asked: a refusal that admits all pods is none": {
			answer: admit(9),
			sent:   []string{"Ask a", "Unready a", "Unready b", "Update a", "Update b"},
			asked:  []string{"a b"},
		},
		"less than none: a count below zero admits no pod": {
			answer: admit(-1),
			sent:   []string{"Ask a"},
			asked:  []string{"a b"},
			noted:  "a",
		},
		"undecided: a question without a decision is a failure, and no update begins": {
			answer: errors.New("no connection"),
			sent:   []string{"Ask a"},
			asked:  []string{"a b"},
			failed: "ask for the update of 2 pods, pod a first: no connection",
		},
		"paused: a paused rollout asks nothing": {
			change: func(in *workload.Input) { in.Scale.Updates = scale.UpdatesPaused },
		},
		"disallowed: a pod that MayUpdate refuses is not asked for, nor are those after it": {
			sent:  []string{"Ask a", "Unready a", "Update a"},
			asked: []string{"a"},
			noted: "b",
			change: func(in *workload.Input) {
				in.MayUpdate = func(pod *corev1.Pod) (bool, string) { return pod.Name != "b", "the budget is spent" }
			},
		},
		"turn: the pod that takes the turn of another one is asked for first": {
			refused: "a",
			failed:  "update in place pod a",
			sent:    []string{"Ask a", "Unready a", "Unready b", "Update b", "Ask c", "Unready c", "Update c"},
			asked:   []string{"a b", "c"},
		},
		"begun: an update that has begun goes on without a question": {
			pods: func(s *server) {
				in := s.input()
				in.GraceSeconds = 30
				s.run(in)
				s.sent, s.now = nil, s.now.Add(time.Minute)
			},
			sent: []string{"Continue a", "Ask b", "Unready b", "Update b"}, asked: []string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			if c.pods != nil {
				c.pods(s)
			}
			in := s.input()
			in.Ask, in.Scale.Limits.MaxUnavailable = true, 2
			if c.change != nil {
				c.change(&in)
			}
			var asked []string
			s.fails = func(w *workload.Write) error {
				if w.Action != workload.ActionAsk {
					if w.Pod.Name == c.refused {
						return refused()
					}
					return nil
				}
				var names []string
				for _, pod := range w.Asked {
					names = append(names, pod.Name)
				}
				asked = append(asked, strings.Join(names, " "))
				return c.answer
			}
			pass := s.run(in)
			if diff := cmp.Diff(c.sent, s.sent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			failed := workload.Err(pass.Failures())
			if (failed == nil) != (c.failed == "") || failed != nil && !strings.Contains(failed.Error(), c.failed) {
				t.Errorf("failures %v, want %q", failed, c.failed)
			}
			at := slices.IndexFunc(pass.Notes(), func(n note.Note) bool { return n.Code == workload.NoteRefused })
			switch {
			case (at >= 0) != (c.noted != ""):
				t.Errorf("notes %v", pass.Notes())
			case at >= 0 && (pass.Notes()[at].Object != c.noted || pass.Notes()[at].Text != "the budget is spent" ||
				pass.RequeueAfter() != time.Second):
				t.Errorf("note %v, again after %s", pass.Notes()[at], pass.RequeueAfter())
			}
		})
	}
}

// TestAskGroup: the pods of a group are asked for together, and one that is refused refuses the group.
func TestAskGroup(t *testing.T) {
	for admitted, updates := range map[int]bool{0: false, 2: false, 3: true} {
		s := group(t)
		in := s.groups("web:2", "web:3")
		in.Ask = true
		s.fails = func(w *workload.Write) error {
			if w.Action != workload.ActionAsk {
				return nil
			}
			if len(w.Asked) != 3 {
				t.Errorf("asked for %d pods", len(w.Asked))
			}
			return &workload.RefusedError{Admitted: admitted, Reason: "spent"}
		}
		s.run(in)
		if changed := len(s.sent) > 1; changed != updates {
			t.Errorf("%d of 3 pods admitted: sent %v", admitted, s.sent)
		}
		for _, pod := range s.pods {
			if !updates && pod.Labels[kruise.PodRevisionLabelKey] != "web-1" {
				t.Errorf("%d of 3 pods admitted: pod %s was updated", admitted, pod.Name)
			}
		}
	}
}
