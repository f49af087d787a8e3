package groupcommit

import (
	"testing"
	"time"
)

func TestGather(t *testing.T) {
	const several, most = 120 * time.Millisecond, 400 * time.Millisecond
	for name, c := range map[string]struct {
		last            time.Duration
		size, conflicts int
		want            time.Duration
	}{
		"one alone":                 {size: 1},
		"several":                   {size: 2, want: several},
		"several again":             {last: several, size: 2, want: several},
		"a conflict":                {size: 1, conflicts: 1, want: several},
		"conflicts again and again": {last: most, size: 1, conflicts: 1, want: most},
		"one after several":         {last: several, size: 1, want: several / 2},
		"one after a while":         {last: 10 * time.Millisecond, size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gather(c.last, c.size, c.conflicts); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestPause: requests are gathered soon after a write. Later ones do not wait: those that nothing is written for would
// do so for ever.
func TestPause(t *testing.T) {
	now := time.Unix(1, 0)
	c := New[int, int](nil, func() time.Time { return now })
	q := &queue[int]{}
	c.keep(q, 2, 0)
	if got := c.pause(q); got != 120*time.Millisecond {
		t.Errorf("right after a write: %s", got)
	}
	now = now.Add(2 * time.Second)
	if got := c.pause(q); got != 0 {
		t.Errorf("two seconds after a write: %s", got)
	}
}
