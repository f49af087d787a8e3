package workload_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// targeted has three slots, of which some have a revision of their own.
func (s *server) targeted(partition int32, targets map[string]string) workload.Input {
	in := s.input()
	in.Scale.Slots, in.Targets = []string{"a", "b", "c"}, targets
	in.Scale.Limits.Replicas, in.Scale.Limits.Partition = 0, partition
	in.Revisions = []workload.Revision{rev(s, "web-3", "web:3"), rev(s, "web-4", "web:4")}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			all = append(all, []write.Object{ready(c.Slot, c.Revision, "web:"+c.Revision[len("web-"):])})
		}
		return all, nil
	}
	return in
}

// An instance with a revision of its own gets it whatever the partition, within the budget, and keeps it while the
// others roll.
func TestTargets(t *testing.T) {
	cases := map[string]struct {
		partition int32
		targets   map[string]string
		lost      string
		images    string
	}{
		"canary of an older revision: one slot stays while the others are updated": {
			targets: map[string]string{"a": "web-1"},
			images:  "web:1, web:2, web:2",
		},
		"a template for each: each slot has a revision of its own": {
			targets: map[string]string{"a": "web-3", "b": "web-4", "c": "web-2"}, images: "web:3, web:4, web:2",
		},
		"lost: a slot that is missing comes back at its own revision": {
			partition: 3, targets: map[string]string{"b": "web-3"}, lost: "b", images: "web:1, web:3, web:1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			delete(s.pods, c.lost)
			for range 20 {
				pass := s.run(s.targeted(c.partition, c.targets))
				if err := workload.Err(pass.Failures()); err != nil {
					t.Fatal(err)
				}
				if down := s.unready(); down > 1 {
					t.Fatalf("%d pods are not ready", down)
				}
				s.restart()
			}
			got := fmt.Sprintf("%s, %s, %s", s.imageOf("a"), s.imageOf("b"), s.imageOf("c"))
			if got != c.images {
				t.Errorf("images %s, want %s", got, c.images)
			}
			s.sent = nil
			if s.run(s.targeted(c.partition, c.targets)); len(s.sent) > 0 {
				t.Errorf("sent %v although nothing is left to do", s.sent)
			}
		})
	}
}

func (s *server) imageOf(name string) string { return s.pods[name].Spec.Containers[0].Image }

func (s *server) unready() (n int) {
	for _, pod := range s.all() {
		if !workload.IsReady(pod) {
			n++
		}
	}
	return n
}

// A raised partition takes instances back, and an instance without a slot that has the update revision of its own
// still goes forward to it.
func TestTargetsWhileOthersGoBack(t *testing.T) {
	s := newServer(t, ready("a", "web-1", "web:1"), ready("b", "web-2", "web:2"), ready("c", "web-2", "web:2"))
	input := func() workload.Input {
		in := s.input()
		in.Scale.Limits.Partition, in.Targets = 2, map[string]string{"a": "web-2"}
		return in
	}
	for range 20 {
		pass := s.run(input())
		if err := workload.Err(pass.Failures()); err != nil {
			t.Fatal(err)
		}
		if down := s.unready(); down > 1 {
			t.Fatalf("%d pods are not ready", down)
		}
		s.restart()
	}
	if got := fmt.Sprintf("%s, %s, %s", s.imageOf("a"), s.imageOf("b"), s.imageOf("c")); got != "web:2, web:1, web:1" {
		t.Errorf("images %s", got)
	}
}

// The rollout of the others is complete although an instance has a revision of its own.
func TestTargetsDoNotHoldPromotion(t *testing.T) {
	s := three(t)
	targets := map[string]string{"a": "web-1"}
	for range 20 {
		s.run(s.targeted(0, targets))
		s.restart()
	}
	if current, promoted := s.run(s.targeted(0, targets)).Promote("web-1"); !promoted || current != "web-2" {
		t.Errorf("the current revision is %s", current)
	}
}

func TestTargetsUnknown(t *testing.T) {
	s := three(t)
	_, err := workload.Plan(s.targeted(0, map[string]string{"a": "web-9"}))
	if invalid := (*scale.InputError)(nil); !errors.As(err, &invalid) || invalid.Field != "Targets[a]" {
		t.Errorf("got %v", err)
	}
}
