package waiting_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/waiting"
	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// runtime tells what a test has it tell.
type runtime struct {
	mu      sync.Mutex
	now     cri.Connection
	changed chan struct{}
	events  chan cri.Event
	// fail is what listening ends with at once.
	fail   error
	opened int
	open   int
}

func (r *runtime) Connection() (cri.Connection, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.changed
}

func (r *runtime) set(now cri.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = now
	close(r.changed)
	r.changed = make(chan struct{})
}

// listens says how often a client began to listen, and how many do now.
func (r *runtime) listens() [2]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]int{r.opened, r.open}
}

func (r *runtime) count(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += by
	if by > 0 {
		r.opened++
	}
}

func (r *runtime) Events(ctx context.Context) iter.Seq2[cri.Event, error] {
	return func(yield func(cri.Event, error) bool) {
		r.count(1)
		defer r.count(-1)
		if r.fail != nil {
			yield(cri.Event{}, r.fail)
			return
		}
		for {
			select {
			case e := <-r.events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// bench has a list with a queue, and a runtime that it follows.
type bench struct {
	*waiting.List
	*runtime

	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func run(t *testing.T, fail error, test func(bench)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		b := bench{
			waiting.New(),
			&runtime{
				now:     cri.Connection{Up: true, Generation: 1},
				changed: make(chan struct{}),
				events:  make(chan cri.Event),
				fail:    fail,
			},
			workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
		}
		if err := b.Start(t.Context(), b.queue); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Add(1)
		go func() {
			defer following.Done()
			b.Reconnections(ctx, b.runtime)
		}()
		following.Add(1)
		go func() {
			defer following.Done()
			b.Events(ctx, b.runtime)
		}()
		bubbletest.Wait()
		test(b)
		cancel()
		following.Wait()
		b.queue.ShutDown()
		bubbletest.Wait()
	})
}

// Events is the list's.
func (b bench) Events(ctx context.Context, r *runtime) { b.List.Events(ctx, r) }

// woken are the pods that are to be looked at.
func (b bench) woken() map[string]bool {
	bubbletest.Wait()
	all := map[string]bool{}
	for b.queue.Len() > 0 {
		item, _ := b.queue.Get()
		b.queue.Done(item)
		all[item.Name] = true
	}
	return all
}

func (b bench) put(name string) {
	b.Put(types.NamespacedName{Namespace: "shop", Name: name}, types.UID("uid-"+name))
}

func (b bench) drop(name string) { b.Drop(types.NamespacedName{Namespace: "shop", Name: name}) }

func (b bench) happens(pod string) {
	b.events <- cri.Event{Kind: cri.ContainerStarted, Sandbox: cri.Sandbox{PodUID: "uid-" + pod}}
}

func is[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestEvents(t *testing.T) {
	run(t, nil, func(b bench) {
		is(t, "nobody listens for an empty list", [2]int{0, 0}, b.listens())
		b.put("web")
		b.put("db")
		bubbletest.Wait()
		is(t, "one listens for all", [2]int{1, 1}, b.listens())
		b.happens("web")
		b.happens("other")
		is(t, "whose pod it is", map[string]bool{"web": true}, b.woken())
		b.drop("web")
		b.drop("web")
		b.happens("web")
		is(t, "who has gone", map[string]bool{}, b.woken())
		b.drop("db")
		bubbletest.Wait()
		is(t, "nobody listens any more", [2]int{1, 0}, b.listens())
		b.put("db")
		b.happens("db")
		is(t, "another time", map[string]bool{"db": true}, b.woken())
		is(t, "it listens again", [2]int{2, 1}, b.listens())
	})
}

func TestNoEvents(t *testing.T) {
	run(t, errors.ErrUnsupported, func(b bench) {
		b.put("web")
		time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
		b.drop("web")
		b.put("web")
		bubbletest.Wait()
		is(t, "a runtime without events is asked once", [2]int{1, 0}, b.listens())
	})
	run(t, cri.ErrUnavailable, func(b bench) {
		b.put("web")
		time.Sleep(10 * time.Second) //nolint:forbidigo // the time of the bubble
		is(t, "one that is away now and then", [2]int{4, 0}, b.listens())
		b.drop("web")
		time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
		is(t, "and not for an empty list", [2]int{4, 0}, b.listens())
	})
}

func TestReconnections(t *testing.T) {
	run(t, nil, func(b bench) {
		b.put("web")
		b.put("db")
		is(t, "the first connection is no news", map[string]bool{}, b.woken())
		b.set(cri.Connection{Generation: 1})
		is(t, "its loss wakes nobody", map[string]bool{}, b.woken())
		b.set(cri.Connection{Up: true, Generation: 2})
		is(t, "its return wakes all", map[string]bool{"web": true, "db": true}, b.woken())
		b.drop("db")
		b.set(cri.Connection{Up: true, Generation: 3})
		is(t, "and those only that wait", map[string]bool{"web": true}, b.woken())
	})
}
