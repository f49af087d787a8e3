package runtimeclient

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the queue of a controller, which a reconciler watches as a source without events:
//
//	controller.Watch(&r.Queue)
type Queue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start takes the queue of the controller.
func (q *Queue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
	return nil
}

// Result is what a reconciler returns. A controller ignores when to look again where there is also an error, and
// retries after the back-off of the request, which may be a minute. An error of one object must not hold up another one
// that waits for less: the request then comes back for both.
func (q *Queue) Result(request reconcile.Request, after time.Duration, err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil && after > 0 {
		q.queue.AddAfter(request, after)
	}
	return reconcile.Result{}, err
}

// Requeue adds the request of another object than the one that is reconciled. A controller that has not started drops
// it.
func (q *Queue) Requeue(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil {
		q.queue.Add(request)
	}
}
