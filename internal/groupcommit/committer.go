package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrGone is returned for requests of an object that was deleted.
var ErrGone = errors.New("the object was deleted")

// Key identifies an object. An object of the same name with another UID is another object.
type Key struct {
	types.NamespacedName

	UID types.UID
}

// Store reads the objects of a kind, decides requests and writes what was decided. S is the state of an object, R
// a request for it, which also takes its answer.
type Store[S, R any] interface {
	// Cached returns the newest known state of an object; false where the object is gone.
	Cached(key Key) (state S, found bool)
	// Live returns the state of an object on the API server; false where the object is gone.
	Live(ctx context.Context, key Key) (state S, found bool, err error)
	// Decide decides requests upon a state, and returns the state after them; false where nothing is to be written.
	// It decides the same requests again after a conflict.
	Decide(ctx context.Context, state S, requests []R) (after S, changed bool, err error)
	// Write writes the state after a decision, unless the object has changed since. Cached returns the answer from then
	// on.
	Write(ctx context.Context, state, after S) error
}

// Committer commits requests. It is safe for concurrent use.
type Committer[S, R any] struct {
	store Store[S, R]

	mu     sync.Mutex
	queues map[Key]*queue[R]
}

// queue has the requests for one object.
type queue[R any] struct {
	key     Key
	waiting []*request[R]
}

type request[R any] struct {
	value R
	ctx   context.Context //nolint:containedctx // a request whose caller has returned is left out
	done  chan struct{}
	err   error
}

// New returns a Committer.
func New[S, R any](store Store[S, R]) *Committer[S, R] {
	return &Committer[S, R]{store: store, queues: map[Key]*queue[R]{}}
}

// backoff grows to a quarter of a second, with a jitter, so that replicas do not conflict again.
func backoff(conflicts int) time.Duration {
	const least, most = 2 * time.Millisecond, 250 * time.Millisecond
	longest := min(least<<min(conflicts, 10), most)
	return time.Duration(rand.Int64N(int64(longest)) + 1) //nolint:gosec // no secret depends on it
}

// Commit waits until a request is decided, and what was decided is written. It returns ErrGone where the object was
// deleted. After another error the answer in the request must not be read: the batch may still be under way.
func (c *Committer[S, R]) Commit(ctx context.Context, key Key, value R) error {
	r := &request[R]{value: value, ctx: ctx, done: make(chan struct{})}
	c.mu.Lock()
	q := c.queues[key]
	if q == nil {
		q = &queue[R]{key: key}
		c.queues[key] = q
		// The queue outlives its first request, whose values it keeps for logs. It waits for the lock.
		go c.run(context.WithoutCancel(ctx), q)
	}
	q.waiting = append(q.waiting, r)
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the write of %s: %w", key.Name, ctx.Err())
	}
}

// run commits batches until no request waits.
func (c *Committer[S, R]) run(ctx context.Context, q *queue[R]) {
	for c.waits(q) {
		if c.commitBatch(ctx, q) {
			sleep(ctx, gather)
		}
	}
}

// waits reports whether requests wait in a queue. Without any the queue ends.
func (c *Committer[S, R]) waits(q *queue[R]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(q.waiting) == 0 {
		delete(c.queues, q.key)
		return false
	}
	return true
}

// Waiting counts the requests that are in no batch yet.
func (c *Committer[S, R]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, q := range c.queues {
		n += len(q.waiting)
	}
	return n
}
