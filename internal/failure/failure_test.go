package failure_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/internal/failure"
)

func TestParts(t *testing.T) {
	spec, transient := errors.New("spec"), errors.New("transient")
	for name, c := range map[string]struct {
		err   error
		parts int
	}{
		"no error": {nil, 0},
		"one":      {fmt.Errorf("read: %w", spec), 1},
		"joined":   {errors.Join(spec, errors.Join(transient, nil)), 2},
	} {
		if got := failure.Parts(c.err); len(got) != c.parts {
			t.Errorf("%s: %d parts", name, len(got))
		}
	}
}
