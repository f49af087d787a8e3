package podbench

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// soon is how far ahead a requeue lies that Still waits for. A later one is a plan for the future, not work that is
// left.
const soon = time.Second

type (
	request  = reconcile.Request
	newQueue = func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]
)

// observedManager observes the queues of the controllers that are added to it.
type observedManager struct {
	ctrl.Manager
	observe func(*queue)
	// fail reports a queue that cannot be observed.
	fail func(format string, args ...any)
}

// Add implements manager.Manager. A controller is recognised by its fields, for its type is internal to
// controller-runtime.
func (m observedManager) Add(r manager.Runnable) error {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct ||
		!v.Elem().FieldByName("MaxConcurrentReconciles").IsValid() {
		return m.Manager.Add(r)
	}
	field := v.Elem().FieldByName("NewQueue")
	if !field.IsValid() {
		return fmt.Errorf("observe the queue of %T: it has no NewQueue", r)
	}
	inner, ok := field.Interface().(newQueue)
	if !ok {
		return fmt.Errorf("observe the queue of %T: NewQueue has another type", r)
	}
	field.Set(reflect.ValueOf(func(
		name string, limiter workqueue.TypedRateLimiter[request],
	) workqueue.TypedRateLimitingInterface[request] {
		made := inner(name, limiter)
		prioritized, ok := made.(priorityqueue.PriorityQueue[request])
		if !ok {
			m.fail("observe the queue of controller %s: %T is not the default of controller-runtime", name, made)
			return made
		}
		q := newObservedQueue(prioritized)
		m.observe(q)
		return q
	}))
	return m.Manager.Add(r)
}

// queue is the queue of a controller that reports whether the controller has work left.
type queue struct {
	priorityqueue.PriorityQueue[request]

	mu      sync.Mutex
	items   map[request]item // that no worker has taken
	running int
	added   int
}

// item is when something is due.
type item struct {
	at time.Time
	// again is when an addition is due that came when the item was ready. If a worker was taking the item in that moment,
	// the queue keeps the addition; else it does not.
	again time.Time
	// doubtful is an item of which it is not known whether the queue has it, because it comes from such an addition.
	doubtful bool
}

// doubt is how long a worker may need, after the queue has handed a doubtful item out, to say so.
const doubt = 200 * time.Millisecond

func newObservedQueue(q priorityqueue.PriorityQueue[request]) *queue {
	return &queue{PriorityQueue: q, items: map[request]item{}}
}

// Add implements workqueue.TypedInterface.
func (q *queue) Add(item request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue) AddAfter(item request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue) AddRateLimited(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, items ...request) {
	q.mu.Lock()
	q.added++
	now := time.Now()
	for _, r := range items {
		after := o.After
		if o.RateLimited { // the default limiter, to the order of magnitude
			after = 5 * time.Millisecond << min(q.NumRequeues(r), 16)
		}
		known, ok := q.items[r]
		q.items[r] = known.plus(ok, now, after)
	}
	q.mu.Unlock()
	q.PriorityQueue.AddWithOpts(o, items...)
}

// plus is an item after an addition. What was there before is the zero item if nothing was known.
func (i item) plus(known bool, now time.Time, after time.Duration) item {
	due := now.Add(after)
	switch {
	case !known:
		return item{at: due}
	case i.doubtful: // it is there now, and due by the later time
		if due.Before(i.at) {
			due = i.at
		}
		return item{at: due}
	case due.Before(i.at):
		i.at = due
	case after > 0 && !now.Before(i.at) && (i.again.IsZero() || due.Before(i.again)):
		i.again = due
	}
	return i
}

// Get implements workqueue.TypedInterface.
func (q *queue) Get() (item request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue) GetWithPriority() (taken request, priority int, shutdown bool) {
	taken, priority, shutdown = q.PriorityQueue.GetWithPriority()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !shutdown {
		q.take(taken)
		q.running++
	}
	return taken, priority, shutdown
}

func (q *queue) take(taken request) {
	if again := q.items[taken].again; !again.IsZero() {
		q.items[taken] = item{at: again, doubtful: true}
		return
	}
	delete(q.items, taken)
}

// Done implements workqueue.TypedInterface.
func (q *queue) Done(item request) {
	q.PriorityQueue.Done(item)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
}

// left describes the work that is left, and returns how many additions there were so far.
func (q *queue) left() (work string, added int) {
	ready := q.Len()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running > 0 || ready > 0 {
		return fmt.Sprintf("%d requests reconciled, %d queued", q.running, ready), q.added
	}
	for r, i := range q.items {
		after := time.Until(i.at)
		switch {
		case i.doubtful && after < -doubt:
			delete(q.items, r)
		case after < soon:
			return fmt.Sprintf("%s is due in %s", r, after.Round(time.Millisecond)), q.added
		}
	}
	return "", q.added
}
