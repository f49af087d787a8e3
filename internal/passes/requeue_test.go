package passes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/internal/passes"
)

func TestSooner(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want time.Duration }{
		"never":               {0, 0, 0},
		"the first":           {2, 0, 2},
		"the second":          {0, 3, 3},
		"the shorter":         {2, 3, 2},
		"in whatever order":   {3, 2, 2},
		"less than zero":      {-1, -2, 0},
		"less than zero, too": {-1, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passes.Sooner(c.a, c.b); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestEarliest(t *testing.T) {
	var e passes.Earliest
	if e.After() != 0 {
		t.Error("nothing was asked for")
	}
	var group sync.WaitGroup
	for i := range 10 {
		group.Add(1)
		go func() {
			defer group.Done()
			e.In(time.Duration(i) * time.Second)
		}()
	}
	group.Wait()
	if got := e.After(); got != time.Second {
		t.Errorf("got %s", got)
	}
}
