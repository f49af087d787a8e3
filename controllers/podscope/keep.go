package podscope

import (
	"time"

	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// place is a namespace in the entries, of those that fail closed or of those that are open.
type place struct {
	namespace string
	open      bool
}

// places are the namespaces in the entries, with the time since which no object needs them; zero for one that is
// needed.
type places map[place]time.Time

// keep returns the namespaces of contributions, and those whose last object is gone for less than a duration, which it
// contributes. The next one leaves after the last result.
func (before places) keep(
	all []scope.Contribution, d time.Duration, now time.Time,
) (after places, kept scope.Contribution, next time.Duration) {
	after = places{}
	for _, c := range all {
		for _, name := range c.Closed {
			after[place{name, false}] = time.Time{}
		}
		for _, name := range c.Open {
			after[place{name, true}] = time.Time{}
		}
	}
	for p, gone := range before {
		if _, needed := after[p]; needed {
			continue
		}
		if gone.IsZero() {
			gone = now
		}
		left := gone.Add(d).Sub(now)
		if left <= 0 {
			continue
		}
		after[p] = gone
		next = requeue.Sooner(next, left)
		if p.open {
			kept.Open = append(kept.Open, p.namespace)
		} else {
			kept.Closed = append(kept.Closed, p.namespace)
		}
	}
	return after, kept, next
}
