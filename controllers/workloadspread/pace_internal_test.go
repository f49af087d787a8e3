package workloadspread

import (
	"math/rand/v2"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPace: a change of one pod counts at once, and events that follow each other are gathered for up to a second.
func TestPace(t *testing.T) {
	var p pacer
	key, now := client.ObjectKey{Namespace: "shop", Name: "spread"}, noon()
	at := func(after, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := p.delay(key, 0, now); got != want {
			t.Errorf("an event waits for %s, want %s", got, want)
		}
	}
	at(0, shortest)
	at(10*time.Millisecond, shortest-10*time.Millisecond)
	at(shortest, growth*shortest)
	at(growth*shortest, together)
	at(together/2, together/2)
	at(together, together)
	if got := p.delay(client.ObjectKey{Namespace: "other", Name: "spread"}, few, now); got != shortest {
		t.Errorf("an event of another WorkloadSpread waits for %s", got)
	}
	at(3*together, shortest)
	if got := p.delay(client.ObjectKey{Name: "busy"}, few+1, now); got != together {
		t.Errorf("an event among many creations waits for %s", got)
	}
	now = now.Add(-time.Hour) // a clock that is set back
	at(0, shortest)
}

// TestPaceInStorms: passes of a storm are at most one a second, and three for its beginning.
func TestPaceInStorms(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p pacer
		key, now := client.ObjectKey{Name: "spread"}, noon()
		passes, due, seconds := 0, time.Time{}, 1+r.IntN(20)
		for now.Before(noon().Add(time.Duration(seconds) * time.Second)) {
			if !due.IsZero() && !now.Before(due) {
				passes, due = passes+1, time.Time{}
			}
			if at := now.Add(p.delay(key, 0, now)); due.IsZero() || at.Before(due) {
				due = at
			}
			now = now.Add(time.Duration(r.IntN(900)) * time.Millisecond / time.Duration(1+r.IntN(100)))
		}
		if passes > seconds+3 {
			t.Errorf("seed %d: %d passes in %d seconds", seed, passes, seconds)
		}
	}
}
