// Package retries has what controllers are alike in: how often they try what fails.
package retries

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The pauses between attempts that fail. What was in the way, as a quota, may go without an event, so that even the
// longest is to be one that a user sits out.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = time.Minute
)

// WithDefaults fills in what is not set: what fails is tried again after pauses that grow up to a minute, and the name
// of a controller need not be the only one, for two managers in one process may both have it.
func WithDefaults(o controller.Options) controller.Options {
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true)
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	return o
}
