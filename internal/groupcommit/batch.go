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

// gather is the pause after a batch of several requests, and after a conflict: more requests are on the way.
const gather = 120 * time.Millisecond

// commitBatch commits the requests that wait in a queue. It reports whether the next requests are to be gathered.
func (c *Committer[S, R]) commitBatch(ctx context.Context, q *queue[R]) (more bool) {
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
			return false
		}
		written, err := c.attempt(ctx, state, requests)
		if !apierrors.IsConflict(err) {
			requests.finish(err)
			return written && (conflicts > 0 || len(requests) > 1)
		}
		sleep(ctx, backoff(conflicts))
		if state, found, err = c.live(ctx, q.key); err != nil {
			requests.finish(err)
			return false
		}
	}
	requests = c.take(q, requests)
	requests.finish(ErrGone)
	return false
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
	_ = wait.PollUntilContextTimeout(ctx, d, d, false, func(context.Context) (bool, error) { return true, nil })
}
