package sidecarset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

func TestPause(t *testing.T) {
	r, err := New(&warehouse{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for took, want := range map[time.Duration]time.Duration{
		0: shortestPause, time.Millisecond: shortestPause, 100 * time.Millisecond: 500 * time.Millisecond, time.Minute: time.Second,
	} {
		r.memory.of("s").took.Store(int64(took))
		if got := r.memory.pause("s"); got != want {
			t.Errorf("to look and plan takes %s: want %s, got %s", took, want, got)
		}
	}
	if got := r.memory.pause("other"); got != shortestPause {
		t.Errorf("of a set that is not known: got %s", got)
	}
}

func TestTerminal(t *testing.T) {
	spec, other := &rollout.SpecError{Field: "spec.selector", Err: errors.New("odd")}, errors.New("other")
	for name, c := range map[string]struct {
		err      error
		terminal bool
	}{
		"the spec":          {spec, true},
		"only the spec":     {errors.Join(nil, errors.Join(spec, spec)), true},
		"and another":       {errors.Join(spec, other), false},
		"not at all":        {other, false},
		"wrapped by a pass": {fmt.Errorf("pass: %w", other), false},
	} {
		if got := errors.Is(failure.Terminal(c.err, needsOtherSpec), reconcile.TerminalError(nil)); got != c.terminal {
			t.Errorf("%s: retried: %t", name, !got)
		}
	}
}
