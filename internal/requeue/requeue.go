// Package requeue collects when a reconciler has to look again.
package requeue

import (
	"sync"
	"time"
)

// Earliest is the shortest of the durations that it was given. Its zero value is never. It is safe for concurrent use.
type Earliest struct {
	mu    sync.Mutex
	after time.Duration
}

// In asks for another pass after a duration. Zero and less ask for none.
func (e *Earliest) In(after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.after = Sooner(e.after, after)
}

// After is the shortest duration; zero for never.
func (e *Earliest) After() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.after
}

// Sooner returns the shorter of two durations, of which zero and less mean never.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Until returns how long it is from now until some seconds after a time. The seconds are at most a hundred years, so
// that a duration holds the answer also where the clock was set back.
func Until(from time.Time, seconds int64, now time.Time) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return from.Add(time.Duration(min(max(seconds, 0), most)) * time.Second).Sub(now)
}
