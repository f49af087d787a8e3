package disruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// request asks for disruptions under one budget, up to the first one that is refused.
type request struct {
	disruptions []pub.Disruption
	dryRun      bool
	verdicts    []pub.Verdict
}

// isStateless decides the review where it depends on no status that another writer may change. It reports whether it
// could.
func (r *request) isStateless(b pub.Budget, now time.Time) bool {
	verdicts := make([]pub.Verdict, len(r.disruptions))
	for i, d := range r.disruptions {
		v := pub.Review(b, d, now)
		switch v.Reason {
		case pub.NoEffect, pub.PodExempt, pub.PodUnavailable, pub.PodIgnored, pub.OperationUnprotected, pub.NothingDesired:
			verdicts[i] = v
		default:
			return false
		}
	}
	r.verdicts = verdicts
	return true
}

// decide reviews the disruptions by a state of the budget. It returns the state after what it admits, and whether that
// has more records.
func (r *request) decide(b pub.Budget, now time.Time) (pub.Budget, bool) {
	r.verdicts = r.verdicts[:0]
	after, spent := b, false
	for _, d := range r.disruptions {
		v := pub.Review(after, d, now)
		r.verdicts = append(r.verdicts, v)
		if !v.Allowed {
			break
		}
		if v.Record != nil {
			after, spent = after.Spend(*v.Record), true
		}
	}
	if r.dryRun {
		return b, false
	}
	return after, spent
}

// admit is the answer where the budget was deleted.
func (r *request) admit() {
	r.verdicts = make([]pub.Verdict, len(r.disruptions))
	for i := range r.verdicts {
		r.verdicts[i] = pub.Verdict{Allowed: true, Reason: Unguarded}
	}
}

// commit decides a review together with the others under its budget, and records what it admits. It waits for a budget
// without a status of its generation.
func (g *Guard) commit(ctx context.Context, b pub.Budget, r *request) error {
	until, cancel := context.WithTimeout(ctx, g.options.SyncTimeout)
	defer cancel()
	for {
		err := g.reviews.Commit(ctx, groupcommit.Key{NamespacedName: nameOf(b), UID: b.UID}, r)
		switch {
		case errors.Is(err, groupcommit.ErrGone):
			r.admit()
			return nil
		case err != nil:
			return err
		case r.verdicts[len(r.verdicts)-1].Reason != pub.Unsynced:
			return nil
		}
		synced := g.lookups.Budgets.await(until, func() bool {
			now, is := g.lookups.Budgets.find(nameOf(b))
			return !is || now.budget.UID != b.UID || now.budget.Synced()
		})
		if !synced {
			return nil // refused, as the verdict says
		}
	}
}

// seen frees what is kept of budgets that the cache shows. The follower of budgets calls it for each change, also after
// a deletion.
func (g *Guard) seen(uid types.UID, name types.NamespacedName) {
	g.reviews.Seen(groupcommit.Key{NamespacedName: name, UID: uid})
}

// store has the statuses of budgets.
type store struct {
	lookups guardLookups
	now     func() time.Time
}

// Cached implements groupcommit.Store.
func (s *store) Cached(key groupcommit.Key) (known, bool) {
	state, is := s.lookups.Budgets.find(key.NamespacedName)
	return state, is && state.budget.UID == key.UID
}

// Live implements groupcommit.Store.
func (s *store) Live(ctx context.Context, key groupcommit.Key) (known, bool, error) {
	raw := stored.Untyped(budgetKind())
	err := s.lookups.Live.Get(ctx, key.NamespacedName, raw)
	if apierrors.IsNotFound(err) {
		return known{}, false, nil
	}
	if err != nil {
		return known{}, false, err
	}
	state, err := read(raw)
	return state, state.budget.UID == key.UID, err
}

// Version implements groupcommit.Store.
func (*store) Version(state known) string { return state.version }

// Decide implements groupcommit.Store.
func (s *store) Decide(_ context.Context, state known, reviews []*request) (known, bool, error) {
	now, after, changed := s.now(), state, false
	for _, r := range reviews {
		var spent bool
		after.budget, spent = r.decide(after.budget, now)
		changed = changed || spent
	}
	return after, changed, nil
}

// Write implements groupcommit.Store: it records what a batch spends.
func (s *store) Write(ctx context.Context, from, after known) (known, error) {
	data, err := spending(from, after.budget)
	if err != nil {
		return known{}, err
	}
	answer := stored.Untyped(budgetKind())
	answer.SetNamespace(after.budget.Namespace)
	answer.SetName(after.budget.Name)
	if err := s.lookups.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return known{}, fmt.Errorf("record what is spent: %w", err)
	}
	return read(answer)
}
