package workloadspread

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// record is a pod to record in the status of a WorkloadSpread: a new one, or one whose deletion is admitted.
type record struct {
	arrival   *subset.Arrival
	departure *subset.Departure
	// place of an arrival, and the WorkloadSpread that it is of.
	place  subset.Place
	spread *subset.Spread
}

func keyOf(ws *subset.Spread) groupcommit.Key {
	return groupcommit.Key{NamespacedName: types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name}, UID: ws.UID}
}

// store has the statuses of WorkloadSpreads.
type store struct {
	groupcommit.Statuses[entry]

	targets *Targets
	now     func() time.Time
}

// Decide implements groupcommit.Store: it gives each new pod its subset.
func (s *store) Decide(
	ctx context.Context, state entry, records []*record,
) (after entry, changed bool, err error) {
	if state.spread.DeletionTimestamp != nil {
		return state, false, groupcommit.ErrGone
	}
	limits, err := s.targets.limits(ctx, state.spread)
	if err != nil {
		return state, false, err
	}
	books, now := subset.Open(state.spread, limits), s.now()
	for _, r := range records {
		if r.departure != nil { // first, so that its place is free for the others
			books.Depart(*r.departure, now)
		}
	}
	for _, r := range records {
		if r.arrival != nil {
			r.place, r.spread = books.Admit(*r.arrival, now), state.spread
		}
	}
	if !books.Changed() {
		return state, false, nil
	}
	ws := *state.spread
	ws.Status = books.Status()
	return entry{spread: &ws}, true, nil
}
