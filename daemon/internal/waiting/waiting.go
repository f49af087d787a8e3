// Package waiting keeps what waits for something to happen in a container runtime, and has it looked at again when that
// may have been.
package waiting

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// pauseAfter is the pause after an event stream that failed. Reconcilers poll for themselves meanwhile.
const pauseAfter = 3 * time.Second

// Connected is a runtime that reports when it is connected again.
type Connected interface {
	Connection() (cri.Connection, <-chan struct{})
}

// Eventful is a runtime with events of its containers.
type Eventful interface {
	Events(ctx context.Context) iter.Seq2[cri.Event, error]
}

// List is the pods that are waited for, by the request that looks at each. Its zero value is not usable: see New.
type List struct {
	mu    sync.Mutex
	queue func(reconcile.Request)
	pods  map[types.NamespacedName]types.UID
	// some is closed while there is a pod in the list, none while there is not.
	some, none chan struct{}
}

// New makes an empty list.
func New() *List {
	l := &List{pods: map[types.NamespacedName]types.UID{}, some: make(chan struct{}), none: make(chan struct{})}
	close(l.none)
	return l
}

// Start sets the queue of the list. A List is a source of a controller.
func (l *List) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = q.Add
	return nil
}

// Put adds a pod.
func (l *List) Put(pod types.NamespacedName, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pods) == 0 {
		close(l.some)
		l.none = make(chan struct{})
	}
	l.pods[pod] = uid
}

// Drop takes a pod away.
func (l *List) Drop(pod types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.pods[pod]; !ok {
		return
	}
	if delete(l.pods, pod); len(l.pods) == 0 {
		close(l.none)
		l.some = make(chan struct{})
	}
}

// Wake has a pod looked at, whether or not it is in the list.
func (l *List) Wake(pod types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake(pod)
}

func (l *List) wake(pod types.NamespacedName) {
	if l.queue != nil {
		l.queue(reconcile.Request{NamespacedName: pod})
	}
}

// wakeAll is for when anything may have happened, and wakeOnly for when it has in one pod.
func (l *List) wakeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pod := range l.pods {
		l.wake(pod)
	}
}

func (l *List) wakeOnly(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pod, is := range l.pods {
		if is == uid {
			l.wake(pod)
		}
	}
}

// Reconnections wakes all when the connection to a runtime is made again, until the context ends.
func (l *List) Reconnections(ctx context.Context, r Connected) {
	for seen := uint64(0); ; {
		now, changed := r.Connection()
		if now.Up && now.Generation != seen {
			if seen != 0 {
				l.wakeAll()
			}
			seen = now.Generation
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Events requeues the pods of the list whose containers have events, until the context ends or the runtime does not
// support events. It listens only while the list is not empty.
func (l *List) Events(ctx context.Context, r Eventful) {
	for l.wait(ctx, func() chan struct{} { return l.some }) {
		err := l.listen(ctx, r)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			log.FromContext(ctx).Info("Runtime does not support container events, polling instead")
			return
		case err != nil:
			timer := time.NewTimer(pauseAfter)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}

// listen ends without an error when the list is empty.
func (l *List) listen(ctx context.Context, r Eventful) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		l.wait(ctx, func() chan struct{} { return l.none })
		cancel()
	}()
	for event, err := range r.Events(ctx) {
		if err != nil {
			return err
		}
		l.wakeOnly(types.UID(event.Sandbox.PodUID))
	}
	return nil
}

// wait waits for a channel of the list to be closed, and says whether that was before the end of the context.
func (l *List) wait(ctx context.Context, of func() chan struct{}) bool {
	l.mu.Lock()
	closed := of()
	l.mu.Unlock()
	select {
	case <-closed:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
