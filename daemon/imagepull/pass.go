package imagepull

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/ledger"
)

// progressEvery is how often the messages of pulls under way are renewed, all at once: one write of the status.
const progressEvery = time.Minute

// pass looks at everything once, and says when to look again if nothing happens before.
func (r *Reconciler) pass(ctx context.Context) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, nil
	}
	r.collect()
	room := r.space.look(ctx)
	n, again, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	if n == nil {
		r.drop()
		return 0, nil
	}
	r.announce(n)
	r.follow(n)
	now := r.options.Now()
	after := requeue.Sooner(r.advance(ctx, now, room), r.renew(n, now))
	r.announceShort(n, now, room)
	wait, err := r.report(ctx, n, now)
	r.count()
	return requeue.Sooner(requeue.Sooner(after, again), wait), err
}

// read gives the NodeImage as it is or as it has been written, whichever is newer, or nil where there is none to work
// for. While the cache shows the state before a write, read also returns when to look again: where etcd is restored to
// an older version, no event follows.
func (r *Reconciler) read(ctx context.Context) (*v1beta1.NodeImage, time.Duration, error) {
	n := &v1beta1.NodeImage{}
	err := r.client.Get(ctx, client.ObjectKey{Name: r.node}, n)
	switch {
	case apierrors.IsNotFound(err):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read NodeImage: %w", err)
	case n.DeletionTimestamp != nil:
		return nil, 0, nil
	}
	all, _, err := r.book.writes.Overlay(ctx, r.request().NamespacedName, []*v1beta1.NodeImage{n})
	switch {
	case err != nil:
		return nil, 0, err
	case len(all) == 0 || all[0].DeletionTimestamp != nil:
		return nil, 0, nil
	case all[0].UID != n.UID:
		r.book.writes.Forget(r.request().NamespacedName)
	case all[0].ResourceVersion != n.ResourceVersion:
		return all[0].DeepCopy(), ledger.Patience, nil
	}
	return n, 0, nil
}

// collect takes in what attempts have come to. Those of pulls that were stopped only give their place back.
func (r *Reconciler) collect() {
	for _, o := range r.mail.take() {
		delete(r.busy, o.attempt)
		if j := r.jobs[o.attempt.pull.Reference]; j != nil && j.running == o.attempt {
			j.take(o)
			r.enqueue(j)
		}
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
	r.book.writes.Forget(r.request().NamespacedName)
	r.count()
}

func (j *job) stop() {
	if j.running != nil {
		j.running.cancel()
		j.running = nil
	}
}

// follow starts and stops jobs so that they are those of the NodeImage. A job whose result is in the status stays,
// because another writer may remove the result from the status.
func (r *Reconciler) follow(n *v1beta1.NodeImage) {
	plan := imagepull.Work(n, r.pulls())
	for _, p := range plan.Stop {
		j := r.jobs[p.Reference]
		if j == nil || j.Tag.Version != p.Tag.Version || isIn(n, j.Pull) && asksFor(n, p) {
			continue
		}
		j.stop()
		delete(r.jobs, p.Reference)
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

func asksFor(n *v1beta1.NodeImage, p imagepull.Pull) bool {
	return slices.ContainsFunc(n.Spec.Images[p.Reference.Name].Tags, func(t v1beta1.ImageTagSpec) bool {
		return t.Tag == p.Tag.Tag && t.Version == p.Tag.Version
	})
}

func (r *Reconciler) pulls() []imagepull.Pull {
	pulls := make([]imagepull.Pull, 0, len(r.jobs))
	for _, j := range r.jobs {
		pulls = append(pulls, j.Pull)
	}
	return pulls
}

// advance begins the attempts that may begin.
func (r *Reconciler) advance(ctx context.Context, now time.Time, room imagepull.Headroom) time.Duration {
	link, _ := r.images.Connection()
	var ready []*job
	var after time.Duration
	for _, j := range r.inOrder() {
		due, wait := j.due(now, link, room)
		after = requeue.Sooner(after, wait)
		if due {
			ready = append(ready, j)
		}
	}
	turns := r.turns
	if room.Scarce {
		turns.perNamespace = 1
	}
	busy := newLoad()
	for a := range r.busy {
		busy.add(a.registry, a.namespace)
	}
	for {
		i := turns.next(ready, busy)
		if i < 0 {
			return after
		}
		if namespace := busy.payer(ready[i]); r.begin(ctx, ready[i], link, namespace) {
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
func (r *Reconciler) begin(ctx context.Context, j *job, link cri.Connection, namespace string) bool {
	var turn imagepull.Turn
	if j.Pull, turn = j.Next(r.options.Now()); turn.Do != imagepull.DoTry {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turn.Timeout)
	a := &attempt{
		pull: j.Pull, ifAbsent: turn.IfAbsent, timeout: turn.Timeout, generation: link.Generation,
		registry: j.registry, namespace: namespace, cancel: cancel,
	}
	j.running, r.busy[a] = a, struct{}{}
	r.attempts.Add(1)
	go func() {
		defer r.attempts.Done()

		defer cancel()
		r.mail.put(r.try(ctx, a))
		r.bell.ring(0)
	}()
	return true
}

// renew reports pulls that take long: once a minute in their messages, and once per pull in an event.
func (r *Reconciler) renew(n *v1beta1.NodeImage, now time.Time) time.Duration {
	var long []*job
	for _, j := range r.inOrder() {
		if j.underWay() && !j.short {
			long = append(long, j)
		}
	}
	if len(long) == 0 {
		r.progress = time.Time{}
		return 0
	}
	switch {
	case r.progress.IsZero():
		r.progress = now.Add(progressEvery)
	case !now.Before(r.progress):
		for _, j := range long {
			if j.elapsed(now) >= progressEvery {
				j.Status.Message = j.progress(now)
			}
			r.announceSlow(n, j, now)
		}
		r.progress = now.Add(progressEvery)
	}
	return r.progress.Sub(now)
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
