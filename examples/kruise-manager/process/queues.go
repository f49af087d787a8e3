package process

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

// controllerOptions gives each controller its number of workers and a rate limiter of its own.
func controllerOptions(o options.Options) func(name string) controller.Options {
	return func(name string) controller.Options {
		r := o.RateLimiter
		return controller.Options{
			MaxConcurrentReconciles: o.Workers[name], // without a flag: the default, one
			RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
				workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.BaseDelay, r.MaxDelay),
				&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(r.QPS), r.BucketSize)},
			),
			NewQueue: newQueue,
		}
	}
}

func newQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	config := workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: slowTicker{}}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// tick is how often a queue renews its metrics of unfinished work.
const tick = 10 * time.Second

// slowTicker is the clock of queues. They renew their metrics twice a second otherwise, which wakes an idle manager of
// two dozen controllers each 20 milliseconds.
type slowTicker struct{ clock.RealClock }

// NewTicker implements clock.WithTicker.
func (c slowTicker) NewTicker(every time.Duration) clock.Ticker {
	return c.RealClock.NewTicker(max(every, tick))
}
