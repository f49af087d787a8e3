package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
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
	// Cached returns the state of an object in the cache; false where the object is gone.
	Cached(key Key) (state S, found bool)
	// Live returns the state of an object on the API server; false where the object is gone.
	Live(ctx context.Context, key Key) (state S, found bool, err error)
	// Version returns the resource version of a state.
	Version(state S) string
	// Decide decides requests upon a state, and returns the state after them; false where nothing is to be written.
	// It decides the same requests again after a conflict.
	Decide(ctx context.Context, state S, requests []R) (after S, changed bool, err error)
	// Write writes a state, unless the object has another version than the state that was decided upon. It returns
	// the answer.
	Write(ctx context.Context, state, after S) (written S, err error)
}

// Options of a Committer. The zero value is ready.
type Options struct {
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Backoff returns the pause after a conflict; nil for pauses that grow to a quarter of a second.
	Backoff func(conflicts int) time.Duration
	// MaxConflicts is how many conflicts a batch survives; zero for any number before the deadlines of its requests.
	MaxConflicts int
	// Gather returns how long to gather requests before the next batch, from the last such pause, the size of the
	// batch and its conflicts; nil for no pause.
	Gather func(last time.Duration, size, conflicts int) time.Duration
}

// Committer commits requests. It is safe for concurrent use.
type Committer[S, R any] struct {
	store   Store[S, R]
	options Options

	mu     sync.Mutex
	queues map[Key]*queue[S, R]
}

// queue has the requests for one object.
type queue[S, R any] struct {
	key     Key
	waiting []*request[R]
	running bool
	// last is the newest state that this process wrote or read live, and at the time of that; nil for none.
	last *S
	at   time.Time
	// gather is the pause before the next batch.
	gather time.Duration
}

type request[R any] struct {
	value R
	ctx   context.Context //nolint:containedctx // a request whose caller has returned is left out
	done  chan struct{}
	err   error
}

// New returns a Committer.
func New[S, R any](store Store[S, R], o Options) *Committer[S, R] {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
	if o.Gather == nil {
		o.Gather = func(time.Duration, int, int) time.Duration { return 0 }
	}
	o.MaxConflicts = cmp.Or(o.MaxConflicts, int(^uint(0)>>1))
	return &Committer[S, R]{store: store, options: o, queues: map[Key]*queue[S, R]{}}
}

// backoff grows to a quarter of a second, with a jitter, so that replicas do not conflict again.
func backoff(conflicts int) time.Duration {
	const least, most = 2 * time.Millisecond, 250 * time.Millisecond
	longest := min(least<<min(conflicts, 10), most)
	return time.Duration(rand.Int64N(int64(longest)) + 1) //nolint:gosec // no secret depends on it
}

const (
	// maxGather bounds how long requests are gathered for one write.
	maxGather = 400 * time.Millisecond
	// gatherAfter is for how long after a write the next requests are gathered.
	gatherAfter = time.Second
)

// Gather is a pause for Options.Gather. It is longer after a conflict, and with several requests in one batch. A
// request that comes alone does not wait.
func Gather(last time.Duration, size, conflicts int) time.Duration {
	const least, several = 10 * time.Millisecond, 120 * time.Millisecond
	switch {
	case conflicts > 0:
		return min(max(2*last, several), maxGather)
	case size > 1:
		return max(last*7/8, several)
	case last <= least:
		return 0
	}
	return last / 2
}

// Commit waits until a request is decided, and what was decided is written. It returns ErrGone where the object was
// deleted. After another error the answer in the request must not be read: the batch may still be under way.
func (c *Committer[S, R]) Commit(ctx context.Context, key Key, value R) error {
	r := &request[R]{value: value, ctx: ctx, done: make(chan struct{})}
	c.mu.Lock()
	q := c.queues[key]
	if q == nil {
		q = &queue[S, R]{key: key}
		c.queues[key] = q
	}
	q.waiting = append(q.waiting, r)
	if !q.running {
		q.running = true
		// The queue outlives its first request, whose values it keeps for logs.
		go c.run(context.WithoutCancel(ctx), q)
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the write of %s: %w", key.Name, ctx.Err())
	}
}

// run commits batches until no request waits.
func (c *Committer[S, R]) run(ctx context.Context, q *queue[S, R]) {
	for c.waits(q) {
		c.commitBatch(ctx, q)
	}
}

// waits reports whether requests wait in a queue. Without any the queue stops.
func (c *Committer[S, R]) waits(q *queue[S, R]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(q.waiting) > 0 {
		return true
	}
	q.running = false
	c.free(q)
	return false
}

// Seen frees what is kept of an object whose state the cache has. The caller must report each change of the cache, also
// deletions.
func (c *Committer[S, R]) Seen(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[key]; q != nil && !q.running {
		c.free(q)
	}
}

// free drops a queue without requests, unless its last state or its pause is still of use. The caller holds the lock.
func (c *Committer[S, R]) free(q *queue[S, R]) {
	state, found := c.store.Cached(q.key)
	if !found || q.gather == 0 && (q.last == nil || !c.newer(*q.last, state)) {
		delete(c.queues, q.key)
	}
}

// Newest returns the state of an object that this process wrote or read live, where it is newer than that of the cache.
func (c *Committer[S, R]) Newest(key Key) (state S, is bool) {
	cached, found := c.store.Cached(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[key]
	if q == nil || q.last == nil || found && !c.newer(*q.last, cached) {
		return state, false
	}
	return *q.last, true
}

// Kept counts the objects that take memory.
func (c *Committer[S, R]) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queues)
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

// newer reports whether a state is later than another one. Versions that cannot be compared are no later.
func (c *Committer[S, R]) newer(state, than S) bool {
	order, err := write.CompareVersions(c.store.Version(state), c.store.Version(than))
	return err == nil && order > 0
}
