package workloads

import (
	"math"
	"strings"
	"testing"
)

func TestMaxCreations(t *testing.T) {
	for name, c := range map[string]struct {
		creations int
		template  string
		want      int
	}{
		"few":                   {5, strings.Repeat("x", 3<<20), 5},
		"plain":                 {400, "x", 400},
		"a typing error":        {math.MaxInt32, "x", 512},
		"a large template":      {math.MaxInt32, strings.Repeat("x", 300<<10), 109},
		"the largest":           {math.MaxInt32, strings.Repeat("x", 3<<20), 10},
		"larger than is stored": {math.MaxInt32, strings.Repeat("x", 30<<20), 8},
	} {
		if got := MaxCreations(c.creations, c.template); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := MaxCreations(100, func() {}); got != 8 {
		t.Errorf("of what cannot be encoded: %d", got)
	}
}
