package sidecarterminator

import (
	"time"

	"k8s.io/client-go/tools/record"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder record.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}
