package workloadspread

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

const (
	// maxConflicts at one status that other replicas write at the same time.
	maxConflicts = 10
)

// record is a pod to record in the status of a WorkloadSpread: a new one, or one whose deletion is admitted.
type record struct {
	arrival   *subset.Arrival
	departure *subset.Departure
	// prepared is what the pod of an arrival has been prepared for.
	prepared choice
	place    subset.Place
	// spread that the place is of.
	spread *subset.Spread
}

func keyOf(ws *subset.Spread) groupcommit.Key {
	return groupcommit.Key{NamespacedName: types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name}, UID: ws.UID}
}

// store has the statuses of WorkloadSpreads.
type store struct {
	lookups Lookups
	now     func() time.Time
}

// Cached implements groupcommit.Store.
func (s *store) Cached(key groupcommit.Key) (*subset.Spread, bool) {
	state := s.lookups.Spreads.Named(key.NamespacedName)
	return state, isCurrent(state, key)
}

// Live implements groupcommit.Store.
func (s *store) Live(ctx context.Context, key groupcommit.Key) (*subset.Spread, bool, error) {
	raw := stored.Untyped(Kind())
	err := s.lookups.Live.Get(ctx, key.NamespacedName, raw)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	state, _, err := stored.Decode[subset.Spread](raw)
	return state, err == nil && isCurrent(state, key), err
}

func isCurrent(state *subset.Spread, key groupcommit.Key) bool {
	return state != nil && state.UID == key.UID && state.DeletionTimestamp == nil
}

// Version implements groupcommit.Store.
func (*store) Version(state *subset.Spread) string { return state.ResourceVersion }

// Decide implements groupcommit.Store: it gives each new pod its subset.
func (s *store) Decide(
	ctx context.Context, state *subset.Spread, records []*record,
) (*subset.Spread, bool, error) {
	limits, err := s.lookups.Targets.limits(ctx, state)
	if err != nil {
		return nil, false, err
	}
	books, now := subset.Open(state, limits), s.now()
	for _, r := range records {
		if r.departure != nil { // first, so that its place is free for the others
			books.Depart(*r.departure, now)
		}
	}
	for _, r := range records {
		if r.arrival != nil {
			r.place, r.spread = books.Admit(r.preparedFor(state), now), state
		}
	}
	if !books.Changed() {
		return state, false, nil
	}
	after := *state
	after.Status = books.Status()
	return &after, true, nil
}

// preparedFor returns an arrival with the subset that its pod has been prepared for: no subset of a spec that has
// changed since.
func (r *record) preparedFor(state *subset.Spread) subset.Arrival {
	a, name := *r.arrival, r.prepared.name()
	if r.prepared.spread.Generation != state.Generation {
		name = ""
	}
	a.Prepared = &name
	return a
}

// Write implements groupcommit.Store.
func (s *store) Write(ctx context.Context, from, after *subset.Spread) (*subset.Spread, error) {
	patch, err := statuspatch.Always(from, after, nil, statuspatch.SameVersion)
	if err != nil {
		return nil, err
	}
	answer := stored.Untyped(Kind())
	answer.SetNamespace(from.Namespace)
	answer.SetName(from.Name)
	if err := s.lookups.Client.Status().Patch(ctx, answer, patch); err != nil {
		return nil, err
	}
	written, _, err := stored.Decode[subset.Spread](answer)
	return written, err
}

// Seen frees what is kept of a WorkloadSpread that the cache shows or has lost.
func (d *Allocator) Seen(uid types.UID, name types.NamespacedName) {
	d.records.Seen(groupcommit.Key{NamespacedName: name, UID: uid})
}
