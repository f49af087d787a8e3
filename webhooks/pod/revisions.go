package pod

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// resolve returns the set as this pod gets it, which may be a former revision.
func (s *sidecars) resolve(ctx context.Context, r *round, set *sidecar.Set) (*sidecar.Set, error) {
	former, err := s.former(ctx, set)
	if err != nil {
		return nil, err
	}
	held, err := set.HoldsBack(r.Pod, r.draw(set, former.Name))
	if err != nil || !held {
		return set, err
	}
	restored, err := sidecar.Restore(set, former)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return restored, nil
}

// former returns the revision that a set is pinned to. A revision that the cache lacks is read from the API server,
// because the cache of revisions may be behind that of sets.
func (s *sidecars) former(ctx context.Context, set *sidecar.Set) (*appsv1.ControllerRevision, error) {
	find := func(from client.Reader) (*appsv1.ControllerRevision, error) {
		revisions, err := stored.PinnedRevisions(ctx, from, s.options.Namespace, set.Object())
		if err != nil {
			return nil, &LookupError{What: "revisions of sidecarset " + set.Name(), Err: err}
		}
		return sidecar.Former(set, revisions)
	}
	former, err := find(s.lookups.Revisions)
	if !errors.Is(err, sidecar.ErrNoRevision) || s.lookups.Live == nil {
		return former, err
	}
	pin := fmt.Sprint(set.Object().UID, set.Object().Generation)
	if _, absent := s.absent.Get(pin); absent {
		return nil, err
	}
	former, err = find(s.lookups.Live)
	if errors.Is(err, sidecar.ErrNoRevision) {
		s.absent.Add(pin, nil, absentTTL)
	}
	return former, err
}

// draw returns the random number of a set for this pod. A pod that was injected before keeps its revision: the API
// server sends a pod once for each entry that selects it, and each of them is a request of its own.
func (r *round) draw(set *sidecar.Set, former string) uint32 {
	if got, before := gotBefore(r.Pod, set.Name()); before {
		if got == former {
			return 0
		}
		return math.MaxUint32
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(r.UID) + "/" + set.Name()))
	return uint32(h.Sum64() >> 32)
}
