package groupcommit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/ledger"
)

// batch has the requests that one write commits.
type batch[R any] []*request[R]

// commitBatch commits the requests that wait in a queue.
func (c *Committer[S, R]) commitBatch(ctx context.Context, q *queue[S, R]) {
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
	if len(requests) == 0 {
		return
	}
	state, found := c.newest(ctx, q, requests)
	for conflicts := 0; found; conflicts++ {
		if requests = c.take(q, requests); len(requests) == 0 {
			return
		}
		after, changed, err := c.decide(ctx, state, requests)
		if err != nil || !changed {
			requests.finish(err)
			return
		}
		written, err := c.write(ctx, state, after, requests)
		switch {
		case err == nil:
			c.keep(q, written, len(requests), conflicts)
			requests.finish(nil)
			return
		case apierrors.IsNotFound(err):
			requests.finish(ErrGone)
			return
		case !apierrors.IsConflict(err) || conflicts >= c.options.MaxConflicts:
			requests.finish(fmt.Errorf("write the status of %s: %w", q.key.Name, err))
			return
		}
		sleep(ctx, c.options.Backoff(conflicts))
		if state, found, err = c.live(ctx, q, requests); err != nil {
			requests.finish(err)
			return
		}
	}
	requests = c.take(q, requests)
	requests.finish(ErrGone)
}

func (c *Committer[S, R]) decide(ctx context.Context, state S, requests batch[R]) (S, bool, error) {
	ctx, cancel := requests.bound(ctx)
	defer cancel()
	values := make([]R, len(requests))
	for i, r := range requests {
		values[i] = r.value
	}
	return c.store.Decide(ctx, state, values)
}

func (c *Committer[S, R]) write(ctx context.Context, state, after S, requests batch[R]) (S, error) {
	ctx, cancel := requests.bound(ctx)
	defer cancel()
	return c.store.Write(ctx, state, after)
}

// newest returns the newest state that is known of an object; false where the object is gone. A state that the cache
// does not have after ledger.Patience is read live: versions go back where etcd is restored to an older version.
func (c *Committer[S, R]) newest(ctx context.Context, q *queue[S, R], requests batch[R]) (S, bool) {
	state, found := c.store.Cached(q.key)
	if !found {
		return state, false
	}
	c.mu.Lock()
	last, at := q.last, q.at
	c.mu.Unlock()
	switch {
	case last == nil || !c.newer(*last, state):
		return state, true
	case c.options.Now().Sub(at) < ledger.Patience:
		return *last, true
	}
	fresh, found, err := c.live(ctx, q, requests)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read an object whose last write the cache lacks",
			"object", q.key.NamespacedName)
		c.remember(q, last)
		return *last, true
	}
	return fresh, found
}

// live returns the state of an object on the API server, and keeps it; false where the object is gone.
func (c *Committer[S, R]) live(ctx context.Context, q *queue[S, R], requests batch[R]) (S, bool, error) {
	ctx, cancel := requests.bound(ctx)
	defer cancel()
	state, found, err := c.store.Live(ctx, q.key)
	switch {
	case err != nil:
		return state, false, fmt.Errorf("read %s again: %w", q.key.Name, err)
	case found:
		c.remember(q, &state)
	default:
		c.remember(q, nil)
	}
	return state, found, nil
}

// keep keeps a written state, and how long to gather next time.
func (c *Committer[S, R]) keep(q *queue[S, R], written S, size, conflicts int) {
	c.remember(q, &written)
	c.mu.Lock()
	defer c.mu.Unlock()
	q.gather = c.options.Gather(q.gather, size, conflicts)
}

func (c *Committer[S, R]) remember(q *queue[S, R], state *S) {
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	q.last, q.at = state, now
}

// pause returns how long to gather requests. It ends a second after the last write: requests that nothing is written
// for, such as those that are refused, do not wait for others.
func (c *Committer[S, R]) pause(q *queue[S, R]) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.gather > 0 && c.options.Now().Sub(q.at) > gatherAfter {
		q.gather = 0
	}
	return q.gather
}

// take adds the requests that wait to a batch, and leaves out those whose context has ended.
func (c *Committer[S, R]) take(q *queue[S, R], requests batch[R]) batch[R] {
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

// bound bounds a context by the last deadline of a batch.
func (b batch[R]) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	const unbounded = 10 * time.Second // for requests without a deadline, such as those of reconcilers
	var last time.Time
	for _, r := range b {
		until, bounded := r.ctx.Deadline()
		if !bounded {
			return context.WithTimeout(ctx, unbounded)
		}
		if until.After(last) {
			last = until
		}
	}
	return context.WithDeadline(ctx, last)
}

func sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		_ = wait.PollUntilContextTimeout(ctx, d, d, false, func(context.Context) (bool, error) { return true, nil })
	}
}
