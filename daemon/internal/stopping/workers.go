package stopping

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options of a Workers.
type Options struct {
	// By is who has containers stopped, for metrics.
	By string
	// Most is how many are stopped at the same time.
	Most int
	// Event takes events about containers.
	Event func(about *corev1.ObjectReference, eventType, reason, text string)
	// Registerer takes metrics; nil for none.
	Registerer prometheus.Registerer
	// Now is the clock.
	Now func() time.Time
}

// Workers stops containers. Each order has a key, by which it is known until it is forgotten.
type Workers[K comparable] struct {
	options Options
	metrics metrics
	hooks   hooks
	over    func(K)
	// turns has an element for each order that is carried out.
	turns chan struct{}

	mu   sync.Mutex
	jobs map[K]*job
	// closed means that no new job begins. running counts the jobs that have not returned.
	closed  bool
	running sync.WaitGroup
}

// Outcome is what became of an order.
type Outcome struct {
	// Done says that it has ended. Err is why the container could not be stopped.
	Done bool
	Err  error
}

type job struct {
	outcome Outcome
	cancel  context.CancelFunc
	// forgotten deletes the job as soon as it has ended.
	forgotten bool
}

// New returns workers. They call over when an order has ended.
func New[K comparable](o Options, over func(K)) (*Workers[K], error) {
	m, err := newMetrics(o.By, o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Workers[K]{
		options: o, metrics: m, hooks: newHooks(), over: over, turns: make(chan struct{}, o.Most), jobs: map[K]*job{},
	}, nil
}

// Begin takes an order, which outlives the context. It does nothing if one of that key is known.
func (c *Workers[K]) Begin(ctx context.Context, k K, o Order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[k] != nil || c.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{cancel: cancel}
	c.jobs[k] = j
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		defer cancel()
		c.end(k, j, c.carryOut(ctx, o))
	}()
}

// Known are the orders that are not forgotten, and those that are and are not over yet.
func (c *Workers[K]) Known() map[K]Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[K]Outcome, len(c.jobs))
	for k, j := range c.jobs {
		known[k] = j.outcome
	}
	return known
}

// Forget drops an order. One that is not over is given up, and dropped when it has ended.
func (c *Workers[K]) Forget(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch j := c.jobs[k]; {
	case j == nil:
	case j.outcome.Done:
		delete(c.jobs, k)
	default:
		j.forgotten = true
		j.cancel()
	}
}

// Work waits for the end of the context, which ends all orders, and returns when the last of them has ended.
func (c *Workers[K]) Work(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	c.closed = true
	for _, j := range c.jobs {
		j.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

// carryOut stops a container when its turn comes. A panic fails the order, and ends no other work of the daemon.
func (c *Workers[K]) carryOut(ctx context.Context, o Order) (err error) {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	defer func() {
		if fault := recover(); fault != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", fault), "Recovered panic of a stop",
				"stack", string(debug.Stack()))
			err = fmt.Errorf("stop container: panic: %v", fault)
		}
	}()
	if o.Moot != nil && o.Moot(ctx) {
		return nil
	}
	err = c.kill(ctx, o)
	c.metrics.stopped(err)
	return err
}

// end records that an order has ended, and calls over.
func (c *Workers[K]) end(k K, j *job, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed && err != nil:
		return // the next process reads its cause again
	case j.forgotten:
		delete(c.jobs, k)
	default:
		j.outcome = Outcome{Done: true, Err: err}
	}
	c.over(k)
}
