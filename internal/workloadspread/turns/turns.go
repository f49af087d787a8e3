package turns

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Turns are those of all objects of a kind. It is safe for concurrent use.
type Turns[K comparable, Q any] struct {
	// Serve answers what joins the turn. It returns after at least one Join.
	Serve func(ctx context.Context, key K, turn *Turn[Q])

	mu    sync.Mutex
	lines map[K]*Turn[Q]
}

// Turn is one turn of one object.
type Turn[Q any] struct {
	mu      sync.Mutex
	waiting []*Request[Q]
	joined  []*Request[Q]
}

// Request is one request that waits for its answer.
type Request[Q any] struct {
	Value Q

	ctx  context.Context //nolint:containedctx // a request that nothing waits for any more is not served
	once sync.Once
	done chan struct{}
	err  error
}

// Answer answers requests.
func Answer[Q any](batch []*Request[Q], err error) {
	for _, r := range batch {
		r.once.Do(func() {
			r.err = err
			close(r.done)
		})
	}
}

// Ask waits until a turn of the object has answered the request.
func (t *Turns[K, Q]) Ask(ctx context.Context, key K, value Q) error {
	r := &Request[Q]{Value: value, ctx: ctx, done: make(chan struct{})}
	t.mu.Lock()
	l := t.lines[key]
	if l == nil {
		l = &Turn[Q]{}
		if t.lines == nil {
			t.lines = map[K]*Turn[Q]{}
		}
		t.lines[key] = l
		// The turns outlive the first request, whose values they keep for logs.
		go t.run(context.WithoutCancel(ctx), key, l)
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, r)
	l.mu.Unlock()
	t.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Busy counts the objects that have a turn.
func (t *Turns[K, Q]) Busy() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines)
}

// run serves turns until nothing waits.
func (t *Turns[K, Q]) run(ctx context.Context, key K, l *Turn[Q]) {
	for {
		t.mu.Lock()
		l.mu.Lock()
		idle := len(l.waiting) == 0
		l.mu.Unlock()
		if idle {
			delete(t.lines, key)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.serve(ctx, key, l)
	}
}

func (t *Turns[K, Q]) serve(ctx context.Context, key K, l *Turn[Q]) {
	l.joined = nil
	err := fmt.Errorf("the turn of %v left the request out", key)
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v [recovered]", fault)
			log.FromContext(ctx).Error(err, "Recovered panic in a turn", "key", key, "stack", string(debug.Stack()))
			l.Join(nil) // else they would wait for the same panic
		}
		Answer(l.joined, err)
	}()
	t.Serve(ctx, key, l)
}

// Join returns a batch with the requests that wait, without those whose context has ended.
func (l *Turn[Q]) Join(batch []*Request[Q]) []*Request[Q] {
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	l.joined = append(l.joined, waiting...)
	var live []*Request[Q]
	for _, r := range append(batch, waiting...) {
		if r.ctx.Err() == nil {
			live = append(live, r)
		}
	}
	return live
}

// Until returns the last deadline of a batch; false where a request has none.
func Until[Q any](batch []*Request[Q]) (last time.Time, bounded bool) {
	for _, r := range batch {
		until, is := r.ctx.Deadline()
		if !is {
			return time.Time{}, false
		}
		if until.After(last) {
			last = until
		}
	}
	return last, len(batch) > 0
}
