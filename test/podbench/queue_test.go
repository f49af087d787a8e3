package podbench

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// handing is a queue that calls a function when it has handed an item out, before the worker knows.
type handing struct {
	priorityqueue.PriorityQueue[request]
	then func()
}

func (h *handing) GetWithPriority() (item request, priority int, shutdown bool) {
	item, priority, shutdown = h.PriorityQueue.GetWithPriority()
	h.then()
	return item, priority, shutdown
}

// An addition in the moment in which a worker takes the same item is work that is left, be it due at once or later.
func TestAdditionWhileTaken(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "later": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inner := &handing{PriorityQueue: priorityqueue.New[request]("")}
			q := newObservedQueue(inner)
			defer q.ShutDown()
			it := request{NamespacedName: types.NamespacedName{Name: "it"}}
			inner.then = func() { q.AddAfter(it, after) }
			q.Add(it)
			taken, _ := q.Get()
			inner.then = func() {}
			q.Done(taken)
			if work, _ := q.left(); work == "" {
				t.Fatal("no work is left")
			}
			taken, _ = q.Get()
			if work, _ := q.left(); work == "" {
				t.Error("no work is left while it is reconciled")
			}
			q.Done(taken)
			if work, added := q.left(); work != "" || added != 2 {
				t.Errorf("after %d additions %s", added, work)
			}
		})
	}
}

// An addition of what is ready is merged, and leaves no work behind.
func TestAdditionWhileReady(t *testing.T) {
	q := newObservedQueue(priorityqueue.New[request](""))
	defer q.ShutDown()
	it := request{NamespacedName: types.NamespacedName{Name: "it"}}
	q.Add(it)
	q.AddAfter(it, 10*time.Millisecond)
	taken, _ := q.Get()
	q.Done(taken)
	for begin := time.Now(); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // the queue has clocks of its own
		work, _ := q.left()
		if work == "" {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatal(work)
		}
	}
}
