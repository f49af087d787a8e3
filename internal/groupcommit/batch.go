package groupcommit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// attemptTimeout bounds a read, and a decision with its write: requests that wait behind it have deadlines.
const attemptTimeout = 5 * time.Second

// batch has the requests that one write commits.
type batch[R any] []*request[R]

// commitBatch commits the requests that wait in a queue.
func (c *Committer[S, R]) commitBatch(ctx context.Context, q *queue[R]) {
	sleep(ctx, c.pause(q))
	requests := c.take(q, nil)
	defer func() {
		if fault := recover(); fault != nil {
			err := fmt.Errorf("panic: %v [recovered]", fault)
			log.FromContext(ctx).Error(err, "Recovered panic while committing a batch",
				"object", q.key.NamespacedName, "stack", string(debug.Stack()))
			requests.finish(err)
		}
	}()
	state, found := c.store.Cached(q.key)
	for conflicts := 0; found; conflicts++ {
		if requests = c.take(q, requests); len(requests) == 0 {
			return
		}
		written, err := c.attempt(ctx, state, requests)
		if written {
			c.keep(q, len(requests), conflicts)
		}
		if !apierrors.IsConflict(err) {
			requests.finish(err)
			return
		}
		sleep(ctx, backoff(conflicts))
		if state, found, err = c.live(ctx, q.key); err != nil {
			requests.finish(err)
			return
		}
	}
	requests = c.take(q, requests)
	requests.finish(ErrGone)
}

// attempt decides a batch upon a state, and writes what was decided. It reports whether there was something to write.
func (c *Committer[S, R]) attempt(ctx context.Context, state S, requests batch[R]) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	values := make([]R, len(requests))
	for i, r := range requests {
		values[i] = r.value
	}
	after, changed, err := c.store.Decide(ctx, state, values)
	if err != nil || !changed {
		return false, err
	}
	err = c.store.Write(ctx, state, after)
	if apierrors.IsNotFound(err) {
		err = ErrGone
	}
	return err == nil, err
}

// live returns the state of an object on the API server; false where the object is gone.
func (c *Committer[S, R]) live(ctx context.Context, key Key) (S, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	state, found, err := c.store.Live(ctx, key)
	if err != nil {
		return state, false, fmt.Errorf("read %s again: %w", key.Name, err)
	}
	return state, found, nil
}

// keep keeps how long to gather requests for the next batch.
func (c *Committer[S, R]) keep(q *queue[R], size, conflicts int) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	q.gather, q.written = gather(q.gather, size, conflicts), now
}

// pause returns how long to gather requests. It ends a second after the last write: requests that nothing is written
// for, such as those that are refused, do not wait for others.
func (c *Committer[S, R]) pause(q *queue[R]) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.gather > 0 && c.now().Sub(q.written) > gatherAfter {
		q.gather = 0
	}
	return q.gather
}

// take adds the requests that wait to a batch, and leaves out those whose context has ended.
func (c *Committer[S, R]) take(q *queue[R], requests batch[R]) batch[R] {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests = append(requests, q.waiting...)
	q.waiting = nil
	live := requests[:0]
	for _, r := range requests {
		if r.ctx.Err() == nil {
			live = append(live, r)
		}
	}
	return live
}

func (b batch[R]) finish(err error) {
	for _, r := range b {
		r.err = err
		close(r.done)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		_ = wait.PollUntilContextTimeout(ctx, d, d, false, func(context.Context) (bool, error) { return true, nil })
	}
}
