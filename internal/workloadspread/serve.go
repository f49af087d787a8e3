package spreads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/write"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/internal/workloadspread/turns"
	"github.com/kruisekit/kruisekit/ledger"
)

const (
	// attempts at one status that other replicas write at the same time.
	attempts = 10
	// within bounds the requests of one write, where a request has no deadline.
	within = 10 * time.Second
	// mostGather is the longest that pods are gathered for one write.
	mostGather = 400 * time.Millisecond
)

type batch = []*turns.Request[*entry]

// serve gives the pods that wait for one WorkloadSpread their subsets, and records them with one write. After a
// conflict it decides again, together with the pods that came meanwhile.
func (d *Desk) serve(ctx context.Context, at account, turn *turns.Turn[*entry]) {
	rest(ctx, d.pace(at.uid))
	all := turn.Join(nil)
	if len(all) == 0 {
		return
	}
	ctx, cancel := bound(ctx, all)
	defer cancel()
	state := d.newest(ctx, at)
	for conflicts := 0; state != nil; conflicts++ {
		if all = turn.Join(all); len(all) == 0 {
			return
		}
		books, err := d.decide(ctx, state, all)
		if err != nil {
			turns.Answer(all, err)
			return
		}
		if !books.Changed() {
			turns.Answer(all, nil)
			return
		}
		written, err := d.write(ctx, state, books)
		if err == nil {
			d.keep(at, written, len(all), conflicts)
			turns.Answer(all, nil)
			return
		}
		if apierrors.IsConflict(err) && conflicts < attempts {
			var latest *subset.Spread
			if latest, err = d.reread(ctx, at, conflicts); err == nil {
				state = latest
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			state = nil
		}
		if state != nil {
			log.FromContext(ctx).Error(err, "Failed to record pods, which get subsets without a limit",
				"workloadSpread", at.NamespacedName, "pods", len(all))
			unrecorded(state, all)
		}
		break
	}
	if state == nil {
		unplaced(all)
	}
	turns.Answer(all, nil)
}

// decide opens the books, and has each entry decided.
func (d *Desk) decide(ctx context.Context, state *subset.Spread, all batch) (*subset.Books, error) {
	limits, err := d.limits(ctx, state)
	if err != nil {
		return nil, err
	}
	books, now := subset.Open(state, limits), d.options.Now()
	for _, r := range all {
		e := r.Value
		if e.departure != nil { // first, so that its place is free for the others
			books.Depart(*e.departure, now)
		}
	}
	for _, r := range all {
		if e := r.Value; e.arrival != nil {
			e.place, e.spread = books.Admit(e.preparedFor(state), now), state
		}
	}
	return books, nil
}

// preparedFor returns an arrival with the subset that its pod has been prepared for: no subset of a spec that has
// changed since.
func (e *entry) preparedFor(state *subset.Spread) subset.Arrival {
	a, name := *e.arrival, e.prepared.name()
	if e.prepared.spread.Generation != state.Generation {
		name = ""
	}
	a.Prepared = &name
	return a
}

// unrecorded gives pods that cannot be recorded the subset of an earlier call, or the first one without a limit.
func unrecorded(state *subset.Spread, all batch) {
	for _, r := range all {
		r.Value.place, r.Value.spread = subset.Place{}, state
		if a := r.Value.arrival; state != nil && a != nil {
			r.Value.place.Subset = subset.Unrecorded(state, *a)
		}
	}
}

// unplaced admits pods as they are: the WorkloadSpread is gone.
func unplaced(all batch) {
	for _, r := range all {
		r.Value.place = subset.Place{}
	}
}

// write records the books, if no other writer has changed the status since the state was read.
func (d *Desk) write(ctx context.Context, from *subset.Spread, books *subset.Books) (*subset.Spread, error) {
	to := *from
	to.Status = books.Status()
	patch, err := statuspatch.Always(from, &to, nil, statuspatch.SameVersion)
	if err != nil {
		return nil, err
	}
	answer := stored.Untyped(Kind())
	answer.SetNamespace(from.Namespace)
	answer.SetName(from.Name)
	if err := d.lookups.Client.Status().Patch(ctx, answer, patch); err != nil {
		return nil, err
	}
	written, _, err := stored.Decode[subset.Spread](answer)
	return written, err
}

// reread reads the WorkloadSpread live, after a pause; nil where it is gone.
func (d *Desk) reread(ctx context.Context, at account, conflicts int) (*subset.Spread, error) {
	rest(ctx, pause(conflicts))
	return d.live(ctx, at)
}

// live reads the WorkloadSpread live; nil where it is gone.
func (d *Desk) live(ctx context.Context, at account) (*subset.Spread, error) {
	raw := stored.Untyped(Kind())
	err := d.lookups.Live.Get(ctx, at.NamespacedName, raw)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read WorkloadSpread %s again: %w", at.Name, err)
	}
	state, _, err := stored.Decode[subset.Spread](raw)
	if err != nil || state.UID != at.uid || state.DeletionTimestamp != nil {
		return nil, err
	}
	return state, nil
}

// newest returns the newest state that is known of a WorkloadSpread; nil where the WorkloadSpread is gone. A state that
// the cache does not show for a minute is read live: versions go back where etcd is restored to an older version.
func (d *Desk) newest(ctx context.Context, at account) *subset.Spread {
	state := d.lookups.Spreads.Named(at.NamespacedName)
	if state == nil || state.UID != at.uid || state.DeletionTimestamp != nil {
		return nil
	}
	last, since := d.recall(at)
	switch {
	case last == nil || !newer(last, state):
		return state
	case d.options.Now().Sub(since) < ledger.Patience:
		return last
	}
	fresh, err := d.live(ctx, at)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read a WorkloadSpread that the cache lacks",
			"workloadSpread", at.NamespacedName)
		fresh = last
	}
	d.remember(at, fresh)
	return fresh
}

// recall returns the state that is kept of a WorkloadSpread, and the time of that.
func (d *Desk) recall(at account) (*subset.Spread, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kept[at.uid]; k != nil {
		return k.last, k.at
	}
	return nil, time.Time{}
}

// remember keeps a state that was read live; nil where the WorkloadSpread is gone.
func (d *Desk) remember(at account, state *subset.Spread) {
	now := d.options.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch k := d.kept[at.uid]; {
	case k == nil:
	case state == nil:
		delete(d.kept, at.uid)
	default:
		k.last, k.at = state, now
	}
}

// newer reports whether a state is later than another one. Versions that cannot be compared are no later.
func newer(state, than *subset.Spread) bool {
	order, err := write.CompareVersions(state.ResourceVersion, than.ResourceVersion)
	return err == nil && order > 0
}

// keep keeps a written state, and how long to gather next time.
func (d *Desk) keep(at account, written *subset.Spread, size, conflicts int) {
	now := d.options.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[at.uid]
	if k == nil {
		k = &kept{}
		d.kept[at.uid] = k
	}
	k.last, k.at, k.gather = written, now, d.options.Gather(k.gather, size, conflicts)
}

func (d *Desk) pace(uid types.UID) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kept[uid]; k != nil {
		return k.gather
	}
	return 0
}

// Seen frees what is kept of a WorkloadSpread that the cache shows or has lost.
func (d *Desk) Seen(uid types.UID, name types.NamespacedName) {
	state := d.lookups.Spreads.Named(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[uid]
	switch {
	case k == nil:
	case state == nil || state.UID != uid || k.gather == 0 && !newer(k.last, state):
		delete(d.kept, uid)
	}
}

// gather is longer after a conflict, and with several pods in one write. A pod that comes alone is not held up.
func gather(last time.Duration, written, conflicts int) time.Duration {
	const least, several = 10 * time.Millisecond, 120 * time.Millisecond
	switch {
	case conflicts > 0:
		return min(max(2*last, several), mostGather)
	case written > 1:
		return max(last*7/8, several)
	case last <= least:
		return 0
	}
	return last / 2
}

// pause grows with conflicts, with a jitter, so that replicas do not meet again.
func pause(conflicts int) time.Duration {
	const least, most = 5 * time.Millisecond, 250 * time.Millisecond
	//nolint:gosec // no secret depends on it
	return time.Duration(rand.Int64N(int64(min(least<<min(conflicts, 10), most))) + 1)
}

func rest(ctx context.Context, d time.Duration) {
	if d > 0 {
		_ = wait.PollUntilContextTimeout(ctx, d, d, false, func(context.Context) (bool, error) { return true, nil })
	}
}

func bound(ctx context.Context, all batch) (context.Context, context.CancelFunc) {
	if until, is := turns.Until(all); is {
		return context.WithDeadline(ctx, until)
	}
	return context.WithTimeout(ctx, within)
}
