package budgets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// line has the questions about one budget. Those that arrive while a write is under way are decided together after it.
type line struct {
	waiting []*question
	running bool
	// last is the newest state that this process wrote or read live, and at the time of that. Its version is empty
	// where there is none.
	last known
	at   time.Time
}

// question asks for disruptions under one budget, up to the first one that is refused.
type question struct {
	disruptions []pub.Disruption
	dryRun      bool
	ctx         context.Context //nolint:containedctx // a question that nothing waits for any more is not decided

	// What follows is written before done is closed.

	done     chan struct{}
	verdicts []pub.Verdict
	// gone means that the budget was deleted.
	gone bool
	err  error
}

// free decides the question where it depends on no status that another writer may change. It reports whether it could.
func (q *question) free(b pub.Budget, now time.Time) bool {
	verdicts := make([]pub.Verdict, len(q.disruptions))
	for i, d := range q.disruptions {
		v := pub.Review(b, d, now)
		switch v.Reason {
		case pub.NoEffect, pub.PodExempt, pub.PodUnavailable, pub.PodIgnored, pub.OperationUnprotected, pub.NothingDesired:
			verdicts[i] = v
		default:
			return false
		}
	}
	q.verdicts = verdicts
	return true
}

// decide reviews the disruptions by a state of the budget, and returns the state after what it admits, and how many
// records it writes.
func (q *question) decide(b pub.Budget, now time.Time) (pub.Budget, int) {
	q.verdicts = q.verdicts[:0]
	after, spent := b, 0
	for _, d := range q.disruptions {
		v := pub.Review(after, d, now)
		q.verdicts = append(q.verdicts, v)
		if !v.Allowed {
			break
		}
		if v.Record != nil {
			after = after.Spend(*v.Record)
			spent++
		}
	}
	if q.dryRun {
		return b, 0
	}
	return after, spent
}

func (q *question) answer() { close(q.done) }

// enqueue waits until the question is decided.
func (g *Guard) enqueue(ctx context.Context, b pub.Budget, q *question) error {
	q.ctx = ctx
	g.mu.Lock()
	l := g.lines[b.UID]
	if l == nil {
		l = &line{}
		g.lines[b.UID] = l
	}
	l.waiting = append(l.waiting, q)
	if !l.running {
		l.running = true
		// The line outlives the first request in it, whose values it keeps for logs.
		go g.run(context.WithoutCancel(ctx), b, l)
	}
	g.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return fmt.Errorf("decide by budget %s: %w", b.Name, ctx.Err())
	}
}

// run decides the questions of a line until there are none left.
func (g *Guard) run(ctx context.Context, b pub.Budget, l *line) {
	for {
		g.mu.Lock()
		if len(l.waiting) == 0 {
			l.running = false
			g.forget(b, l)
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		g.decideAll(ctx, b, l)
	}
}

// take returns the questions that wait, and those of a batch that are still waited for.
func (g *Guard) take(l *line, batch []*question) []*question {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch = append(batch, l.waiting...)
	l.waiting = nil
	live := batch[:0]
	for _, q := range batch {
		if q.ctx.Err() == nil {
			live = append(live, q)
		}
	}
	return live
}

// decideAll decides the questions that wait, and commits what is admitted with one write. After a conflict it decides
// again by the live budget, together with the questions that came meanwhile.
func (g *Guard) decideAll(ctx context.Context, b pub.Budget, l *line) {
	var batch []*question
	defer func() {
		if fault := recover(); fault != nil {
			err := fmt.Errorf("panic: %v [recovered]", fault)
			log.FromContext(ctx).Error(err, "Recovered panic while deciding by a budget",
				"budget", nameOf(b), "stack", string(debug.Stack()))
			finish(batch, err)
		}
	}()
	if batch = g.take(l, nil); len(batch) == 0 {
		return
	}
	state, is := g.newest(ctx, batch, b, l)
	if !is {
		leave(g.take(l, batch))
		return
	}
	for conflicts := 0; ; conflicts++ {
		if batch = g.take(l, batch); len(batch) == 0 {
			return
		}
		now, after, spent := g.options.Now(), state.budget, 0
		for _, q := range batch {
			var n int
			after, n = q.decide(after, now)
			spent += n
		}
		if spent == 0 {
			finish(batch, nil)
			return
		}
		written, err := g.write(ctx, batch, state, after)
		switch {
		case err == nil:
			g.keep(l, written)
			finish(batch, nil)
			return
		case apierrors.IsNotFound(err):
			leave(batch)
			return
		case !apierrors.IsConflict(err):
			finish(batch, fmt.Errorf("record in the status of budget %s: %w", b.Name, err))
			return
		}
		rest(ctx, g.options.Pause(conflicts))
		state, err = g.read(ctx, batch, b)
		switch {
		case apierrors.IsNotFound(err), err == nil && state.budget.UID != b.UID:
			leave(batch)
			return
		case err != nil:
			finish(batch, fmt.Errorf("read budget %s again: %w", b.Name, err))
			return
		}
		g.keep(l, state)
	}
}

// finish answers all questions, with their verdicts or with an error. An error is for those that depend on the write: a
// question that spends nothing may depend on what another one has spent.
func finish(batch []*question, err error) {
	for _, q := range batch {
		q.err = err
		q.answer()
	}
}

// leave answers that the budget is gone.
func leave(batch []*question) {
	for _, q := range batch {
		q.gone = true
		q.answer()
	}
}

// read reads the budget live.
func (g *Guard) read(ctx context.Context, batch []*question, b pub.Budget) (known, error) {
	ctx, cancel := within(ctx, batch)
	defer cancel()
	raw := stored.Untyped(Kind())
	if err := g.lookups.Live.Get(ctx, nameOf(b), raw); err != nil {
		return known{}, err
	}
	return read(raw)
}

// within bounds a context by the last deadline of the questions.
func within(ctx context.Context, batch []*question) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, q := range batch {
		until, bounded := q.ctx.Deadline()
		if !bounded {
			return context.WithTimeout(ctx, unbounded)
		}
		if until.After(last) {
			last = until
		}
	}
	return context.WithDeadline(ctx, last)
}

// unbounded is the time for questions without a deadline, as those of reconcilers.
const unbounded = 10 * time.Second

// pause grows to a quarter of a second, with a jitter, so that replicas do not meet again.
func pause(conflicts int) time.Duration {
	const least, most = 2 * time.Millisecond, 250 * time.Millisecond
	longest := min(least<<min(conflicts, 10), most)
	return time.Duration(rand.Int64N(int64(longest)) + 1) //nolint:gosec // no secret depends on it
}

func rest(ctx context.Context, d time.Duration) {
	_ = wait.PollUntilContextTimeout(ctx, d, d, false, func(context.Context) (bool, error) { return true, nil })
}
