package podunavailablebudget

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/pub"
)

// Options of a Reconciler. The zero value behaves as the reference does by default.
type Options struct {
	// Live reads workloads of kinds that are not watched. Nil is the manager's API reader.
	Live client.Reader
	// Recorder emits events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Policy is what the installation offers. Admission needs the same.
	Policy pub.Policy
}
