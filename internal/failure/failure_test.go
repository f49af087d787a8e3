package failure_test

import (
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/failure"
)

func TestTerminal(t *testing.T) {
	spec, transient := errors.New("spec"), errors.New("transient")
	isSpec := func(err error) bool { return errors.Is(err, spec) }
	cases := map[string]struct {
		err      error
		parts    int
		terminal bool
	}{
		"no error":              {nil, 0, false},
		"the spec":              {fmt.Errorf("read: %w", spec), 1, true},
		"the spec, twice":       {errors.Join(spec, errors.Join(spec, nil)), 2, true},
		"transient":             {transient, 1, false},
		"the spec, and another": {errors.Join(spec, errors.Join(transient)), 2, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := failure.Terminal(c.err, isSpec)
			if errors.Is(got, reconcile.TerminalError(nil)) != c.terminal || len(failure.Parts(c.err)) != c.parts {
				t.Errorf("got %v of %d parts", got, len(failure.Parts(c.err)))
			}
			if (got == nil) != (c.err == nil) {
				t.Errorf("got %v", got)
			}
		})
	}
}
