package process

import (
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
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
		}
	}
}
