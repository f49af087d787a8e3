package binding

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The pauses after failures. The cause of a failure, such as a quota, may end without an event, so that a user waits
// for the longest pause.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = time.Minute
)

// ControllerOptions defaults what is not set: a failed request is retried after pauses that grow up to a minute, and
// two managers of a process may have controllers of the same name.
func ControllerOptions(o controller.Options) controller.Options {
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true)
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	return o
}
