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

// soon is how far ahead a requeue lies that Still waits for. A later one is a plan for the future, not work that is left.
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

// Add implements manager.Manager. A controller is recognised by its fields, for its type is internal to controller-runtime.
func (m observedManager) Add(r manager.Runnable) error {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("MaxConcurrentReconciles").IsValid() {
		return m.Manager.Add(r)
	}
	field := v.Elem().FieldByName("NewQueue")
	if !field.IsValid() {
		return fmt.Errorf("observe the queue of %T: it has no NewQueue", r)
	}
	inner, ok := reflect.TypeAssert[newQueue](field)
	if !ok {
		return fmt.Errorf("observe the queue of %T: NewQueue has another type", r)
	}
	field.Set(reflect.ValueOf(func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		made := inner(name, limiter)
		prioritized, ok := made.(priorityqueue.PriorityQueue[request])
		if !ok {
			m.fail("observe the queue of controller %s: %T is not the default of controller-runtime", name, made)
			return made
		}
		q := &queue{PriorityQueue: prioritized, due: map[request]time.Time{}}
		m.observe(q)
		return q
	}))
	return m.Manager.Add(r)
}

// queue is the queue of a controller that reports whether the controller has work left.
type queue struct {
	priorityqueue.PriorityQueue[request]

	mu      sync.Mutex
	due     map[request]time.Time // of the items that no worker has taken
	running int
	added   int
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
	for _, item := range items {
		due := time.Now().Add(o.After)
		if o.RateLimited { // the default limiter, to the order of magnitude
			due = time.Now().Add(5 * time.Millisecond << min(q.NumRequeues(item), 16))
		}
		if known, ok := q.due[item]; !ok || due.Before(known) {
			q.due[item] = due
		}
	}
	q.mu.Unlock()
	q.PriorityQueue.AddWithOpts(o, items...)
}

// Get implements workqueue.TypedInterface.
func (q *queue) Get() (item request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue) GetWithPriority() (item request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !shutdown {
		delete(q.due, item)
		q.running++
	}
	return item, priority, shutdown
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
	for item, due := range q.due {
		if after := time.Until(due); after < soon {
			return fmt.Sprintf("%s is due in %s", item, after.Round(time.Millisecond)), q.added
		}
	}
	return "", q.added
}
