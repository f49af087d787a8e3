package launchpriority

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/launch"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache: barriers, and a pod before the barrier of a former one is deleted. SetupWithManager takes
	// the manager's API reader where it is nil.
	Live client.Reader
	// Policy is when a container lets the next ones start.
	Policy launch.Policy
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}
