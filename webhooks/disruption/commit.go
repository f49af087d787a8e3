package disruption

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
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

// commit decides a review together with the others under its budget, and records what it admits.
func (g *Guard) commit(ctx context.Context, b pub.Budget, r *request) error {
	name := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	err := g.reviews.Commit(ctx, groupcommit.Key{NamespacedName: name, UID: b.UID}, r)
	if errors.Is(err, groupcommit.ErrGone) {
		r.admit()
		return nil
	}
	return err
}

// store has the statuses of budgets.
type store struct {
	groupcommit.Statuses[known]

	now func() time.Time
}

// Decide implements groupcommit.Store.
func (s *store) Decide(_ context.Context, state known, reviews []*request) (known, bool, error) {
	now, after, changed := s.now(), state, false
	for _, r := range reviews {
		var spent bool
		after.budget, spent = r.decide(after.budget, now)
		changed = changed || spent
	}
	object := *state.object
	object.Status = after.budget.Status
	after.object = &object
	return after, changed, nil
}
