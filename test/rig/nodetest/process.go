package nodetest

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is what a controller takes requests from.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Process is a reconciler of a daemon with a queue and one worker, in the time of a bubble.
type Process struct {
	Queue Queue

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// StartProcess starts a reconciler, what fills its queue, and what works beside it, until the context ends or the
// process is killed. Failures to start or to end cause a panic.
func StartProcess(
	ctx context.Context, r reconcile.Reconciler, source func(context.Context, Queue) error,
	work func(context.Context) error,
) *Process {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
		500*time.Millisecond, 50*time.Second) // as in a daemon
	p := &Process{Queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	ctx, p.cancel = context.WithCancel(ctx)
	if err := source(ctx, p.Queue); err != nil {
		panic(err)
	}
	for _, run := range []func(){
		func() { p.reconcile(ctx, r) },
		func() {
			if err := work(ctx); err != nil {
				panic(err)
			}
		},
		func() {
			<-ctx.Done()
			p.Queue.ShutDown()
		},
	} {
		p.running.Add(1)
		go func() {
			defer p.running.Done()
			run()
		}()
	}
	return p
}

// Kill ends the process without waiting for it.
func (p *Process) Kill() { p.cancel() }

// Wait waits for the end of the process.
func (p *Process) Wait() { p.running.Wait() }

func (p *Process) reconcile(ctx context.Context, r reconcile.Reconciler) {
	for {
		item, shut := p.Queue.Get()
		if shut {
			return
		}
		result, err := r.Reconcile(ctx, item)
		switch {
		case err != nil:
			p.Queue.AddRateLimited(item)
		case result.RequeueAfter > 0:
			p.Queue.Forget(item)
			p.Queue.AddAfter(item, result.RequeueAfter)
		default:
			p.Queue.Forget(item)
		}
		p.Queue.Done(item)
	}
}
