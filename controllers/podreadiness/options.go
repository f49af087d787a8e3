package podreadiness

import "time"

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}
