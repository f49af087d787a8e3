package workload_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/workload"
)

// Each pod has its whole grace period out of traffic, also where the writes of a pass take longer than that, as with a
// client that limits its requests.
func TestGraceBeginsWithTheWrite(t *testing.T) {
	const grace = 3
	s := three(t)
	s.slow = 2 * time.Second
	in := s.input()
	in.Scale.Limits.MaxUnavailable, in.GraceSeconds = 3, grace
	out := map[string]time.Time{}
	s.fails = func(w *workload.Write) error {
		if w.Action == workload.ActionUnready {
			out[w.Pod.Name] = s.now
		}
		return nil
	}
	s.run(in)
	if len(out) != 3 {
		t.Fatalf("left traffic: %v", out)
	}
	for name, since := range out {
		action, err := inplace.Next(inplace.Update{Pod: s.pods[name]}, in.Policy,
			since.Add(grace*time.Second-time.Nanosecond))
		if err != nil || action.Verdict != inplace.Wait {
			t.Errorf("pod %s left traffic at %s, and is changed before %d seconds have passed: %s, %v",
				name, since, grace, action.Verdict, err)
		}
	}
}
