package imagepull

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/passes"
)

// pass looks at everything once, and says when to look again if nothing happens before.
func (r *Reconciler) pass(ctx context.Context) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, nil
	}
	n, again, err := parts.Latest(ctx, r.api.Client, r.writes, r.request().NamespacedName)
	if err != nil {
		return 0, err
	}
	if n == nil || n.DeletionTimestamp != nil {
		r.drop()
		return 0, nil
	}
	r.announce(n)
	r.follow(n)
	now := r.api.Now()
	after := r.advance(ctx, now)
	wait, err := r.report(ctx, n, now)
	r.count()
	return passes.Sooner(passes.Sooner(after, again), wait), err
}

// collect takes the result of an attempt. That of a pull that was stopped only gives its place back.
func (r *Reconciler) collect(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, o.attempt)
	if j := r.jobs[o.attempt.pull.Reference]; j != nil && j.running == o.attempt {
		j.take(o)
		r.enqueue(j)
	}
}

// enqueue puts a job behind all others.
func (r *Reconciler) enqueue(j *job) {
	r.places++
	j.place = r.places
}

// drop ends everything without a word.
func (r *Reconciler) drop() {
	for ref, j := range r.jobs {
		j.stop()
		delete(r.jobs, ref)
	}
	r.writes.Forget(r.request().NamespacedName)
	r.count()
}

func (j *job) stop() {
	if j.running != nil {
		j.running.cancel()
		j.running = nil
	}
}

// follow starts and stops jobs so that they are those of the NodeImage.
func (r *Reconciler) follow(n *v1beta1.NodeImage) {
	plan := imagepull.Work(n, r.pulls())
	for _, p := range plan.Stop {
		j := r.jobs[p.Reference]
		if j != nil && j.Tag.Version == p.Tag.Version {
			j.stop()
			delete(r.jobs, p.Reference)
		}
	}
	for _, p := range plan.Keep {
		if j := r.jobs[p.Reference]; j != nil {
			j.Pull = p
		}
	}
	for _, p := range plan.Start {
		j := &job{Pull: p, registry: registryOf(p.Reference)}
		r.enqueue(j)
		r.jobs[p.Reference] = j
	}
}

func (r *Reconciler) pulls() []imagepull.Pull {
	pulls := make([]imagepull.Pull, 0, len(r.jobs))
	for _, j := range r.jobs {
		pulls = append(pulls, j.Pull)
	}
	return pulls
}

// advance begins the attempts that may begin.
func (r *Reconciler) advance(ctx context.Context, now time.Time) time.Duration {
	up, _ := r.images.Connected()
	var ready []*job
	var after time.Duration
	for _, j := range r.inOrder() {
		due, wait := j.due(now, up)
		after = passes.Sooner(after, wait)
		if due {
			ready = append(ready, j)
		}
	}
	busy := newLoad()
	for a := range r.busy {
		busy.add(a.registry, a.namespace)
	}
	for {
		i := r.turns.next(ready, busy)
		if i < 0 {
			return after
		}
		if namespace := busy.payer(ready[i]); r.begin(ctx, ready[i], namespace) {
			busy.add(ready[i].registry, namespace)
		}
		ready = slices.Delete(ready, i, i+1)
	}
}

// inOrder are the jobs as they wait.
func (r *Reconciler) inOrder() []*job {
	return slices.SortedFunc(maps.Values(r.jobs), func(a, b *job) int { return cmp.Compare(a.place, b.place) })
}

// begin makes an attempt that counts for a namespace. It ends by itself, with its job or with the manager, but not with
// the pass.
func (r *Reconciler) begin(ctx context.Context, j *job, namespace string) bool {
	var turn imagepull.Turn
	if j.Pull, turn = j.Next(r.api.Now()); turn.Do != imagepull.DoTry {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turn.Timeout)
	a := &attempt{
		pull: j.Pull, ifAbsent: turn.IfAbsent, timeout: turn.Timeout,
		registry: j.registry, namespace: namespace, cancel: cancel,
	}
	j.running, r.busy[a] = a, struct{}{}
	r.attempts.Add(1)
	go func() {
		defer r.attempts.Done()

		defer cancel()
		r.collect(r.try(ctx, a))
		r.api.Requeue(r.request())
	}()
	return true
}

func (r *Reconciler) count() {
	waiting := 0
	for _, j := range r.jobs {
		if j.running == nil && !j.Ended() {
			waiting++
		}
	}
	r.metrics.running.Set(float64(len(r.busy)))
	r.metrics.waiting.Set(float64(waiting))
}
