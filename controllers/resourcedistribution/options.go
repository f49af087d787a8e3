package resourcedistribution

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Namespace is the manager's own, which gets no copy: the configuration of the manager is there. With an empty one,
	// all but kube-system and kube-public do.
	Namespace string
	// Live reads copies past the cache. SetupWithManager takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder emits events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}
