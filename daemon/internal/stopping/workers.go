package stopping

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options of a Workers.
type Options struct {
	// By is who has containers stopped, for metrics.
	By string
	// Most is how many are stopped at the same time.
	Most int
	// Recorder takes events; nil for none.
	Recorder record.EventRecorder
	// Registerer takes metrics; nil for none.
	Registerer prometheus.Registerer
	// Now is the clock.
	Now func() time.Time
}

// Workers stops containers. Each order has a key, by which it is known until it is forgotten.
type Workers[K comparable] struct {
	options Options
	metrics *metrics
	hooks   hooks
	over    func(K)

	mu      sync.Mutex
	jobs    map[K]*job
	waiting []K // in the order in which they came
	working int
	more    chan struct{}
}

// Outcome is what became of an order.
type Outcome struct {
	// Done says that it is over. Err is why the container could not be stopped.
	Done bool
	Err  error
}

type job struct {
	order   Order
	outcome Outcome
	// cancel is nil until the job has begun.
	cancel context.CancelFunc
	// forgotten has the job go as soon as it is over.
	forgotten bool
}

// New returns workers, which start with their first order when Work is called. They call over when an order is over,
// unless the order is forgotten.
func New[K comparable](o Options, over func(K)) (*Workers[K], error) {
	m, err := newMetrics(o.By, o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Workers[K]{
		options: o, metrics: m, hooks: newHooks(), over: over, jobs: map[K]*job{}, more: make(chan struct{}, 1),
	}, nil
}

// Record has events go to a recorder. It must come before Work.
func (c *Workers[K]) Record(to record.EventRecorder) { c.options.Recorder = to }

// Begin takes an order. It does nothing if one of that key is known.
func (c *Workers[K]) Begin(k K, o Order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[k] != nil {
		return
	}
	c.jobs[k] = &job{order: o}
	c.waiting = append(c.waiting, k)
	c.nudge()
}

// Known are the orders that are not forgotten.
func (c *Workers[K]) Known() map[K]Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[K]Outcome, len(c.jobs))
	for k, j := range c.jobs {
		if !j.forgotten {
			known[k] = j.outcome
		}
	}
	return known
}

// Cancel gives up an order. It is over with the error of a context that was canceled, unless it ends otherwise before.
func (c *Workers[K]) Cancel(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[k]; j != nil {
		c.cancel(k, j)
	}
}

// Forget drops an order, and gives it up if it is not over.
func (c *Workers[K]) Forget(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[k]
	if j == nil {
		return
	}
	if j.outcome.Done {
		delete(c.jobs, k)
		return
	}
	j.forgotten = true
	c.cancel(k, j)
}

func (c *Workers[K]) cancel(k K, j *job) {
	switch {
	case j.outcome.Done:
	case j.cancel != nil:
		j.cancel()
	default:
		// Its turn comes, and finds that it is over.
		j.cancel = func() {}
		c.end(k, j, context.Canceled)
	}
}

// nudge has Work look for orders.
func (c *Workers[K]) nudge() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// Work carries out orders until the context ends, and returns when the last of them has ended too.
func (c *Workers[K]) Work(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.more:
		}
		for _, turn := range c.next(ctx) {
			working.Add(1)
			go func() {
				defer working.Done()
				turn()
			}()
		}
	}
}

// next is the work of those whose turn has come.
func (c *Workers[K]) next(ctx context.Context) []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var turns []func()
	for len(c.waiting) > 0 && c.working < c.options.Most {
		k := c.waiting[0]
		c.waiting = c.waiting[1:]
		j := c.jobs[k]
		if j == nil || j.cancel != nil {
			continue // given up
		}
		inner, cancel := context.WithCancel(ctx)
		j.cancel = cancel
		c.working++
		turns = append(turns, func() {
			defer cancel()
			err := c.carryOut(inner, j.order)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.leave()
			// An order that the end of Work cut short has no outcome: the next process reads its cause again.
			if ctx.Err() == nil || err == nil {
				c.end(k, j, err)
			}
		})
	}
	return turns
}

// carryOut stops a container. A panic fails the order, and ends no other work of the daemon.
func (c *Workers[K]) carryOut(ctx context.Context, o Order) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", fault), "Recovered panic of a stop",
				"stack", string(debug.Stack()))
			err = fmt.Errorf("stop container: panic: %v", fault)
		}
	}()
	return c.stop(ctx, o)
}

// leave makes room for another.
func (c *Workers[K]) leave() {
	c.working--
	c.nudge()
}

// end records that an order is over, and calls over.
func (c *Workers[K]) end(k K, j *job, err error) {
	if j.forgotten {
		delete(c.jobs, k)
		return
	}
	j.outcome = Outcome{Done: true, Err: err}
	c.over(k)
}
