package workload_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// surging has three slots with a name for one more instance. New pods are ready at once.
func (s *server) surging(strategy workload.Strategy, unavailable int32) workload.Input {
	in := s.input()
	in.Strategy = strategy
	in.Scale.Slots, in.Scale.SurgeSlots = []string{"a", "b", "c"}, []string{"d"}
	in.Scale.Limits.Replicas, in.Scale.Limits.MaxUnavailable, in.Scale.Limits.MaxSurge = 0, unavailable, 1
	in.Build = func(creations []workload.Creation) ([][]write.Object, error) {
		all := make([][]write.Object, len(creations))
		for i, c := range creations {
			all[i] = []write.Object{ready(c.Slot, c.Revision, "web:2")}
		}
		return all, nil
	}
	return in
}

// A slot with surge is updated once another instance makes up for it, which is deleted in the end.
func TestSurgeOfSlots(t *testing.T) {
	cases := map[string]struct {
		strategy    workload.Strategy
		unavailable int32
		fails       func(*workload.Write) error
		sent        string
	}{
		"in place: three slots are available at any time": {
			strategy: workload.InPlaceOnly,
			sent: "Create d, Unready c, Update c, Continue c, Move c, Unready b, Update b, Continue b, Move b, " +
				"Unready a, Update a, Continue a, Move a, Delete d",
		},
		"refused: without the surge instance the budget is left": {
			strategy:    workload.InPlaceOnly,
			unavailable: 1,
			fails:       refusesSurge,
			sent:        "Create d, Unready c, Update c, Create d, Continue c, Move c, Create d, Unready b, Update b",
		},
		"refused, without a budget: nothing is updated": {
			strategy: workload.InPlaceOnly, fails: refusesSurge, sent: "Create d, Create d, Create d",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			passes := 30
			if s.fails = c.fails; c.fails != nil {
				passes = 3
			}
			for range passes {
				pass := s.run(s.surging(c.strategy, c.unavailable))
				if err := workload.Err(pass.Failures()); err != nil && c.fails == nil {
					t.Fatal(err)
				}
				s.restart()
			}
			if got := strings.Join(s.sent, ", "); got != c.sent {
				t.Errorf("want %s, got %s", c.sent, got)
			}
		})
	}
}

func refusesSurge(w *workload.Write) error {
	if _, is := w.Object.(*corev1.Pod); is && w.Verb == write.Create {
		return refused()
	}
	return nil
}
