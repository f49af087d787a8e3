package pod

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// revisionsOf returns one revision by its name, or those of the set where it is pinned by a custom version.
func revisionsOf(
	ctx context.Context, from client.Reader, namespace string, set *sidecar.Set,
) ([]*appsv1.ControllerRevision, error) {
	if name := set.Object().Spec.InjectionStrategy.Revision.RevisionName; name != nil {
		if *name == "" || len(path.IsValidPathSegmentName(*name)) > 0 {
			return nil, nil // no object has this name
		}
		found := &appsv1.ControllerRevision{}
		err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: *name}, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []*appsv1.ControllerRevision{found}, err
	}
	list := &appsv1.ControllerRevisionList{}
	err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{appsv1beta1.SidecarSetNameLabel: set.Name()})
	if err != nil {
		return nil, err
	}
	all := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// absentFor is the pause between two live reads of a revision that does not exist: the set may select hundreds of pods,
// each of which is rejected, or created without it.
const absentFor = time.Second

// absences are the sets whose revision does not exist.
type absences struct {
	mu  sync.Mutex
	all map[string]absence
}

type absence struct {
	uid        types.UID
	generation int64
	until      time.Time
}

// known reports that the revision of this state of the set was read a moment ago.
func (k *absences) known(set *appsv1beta1.SidecarSet, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, ok := k.all[set.Name]
	return ok && a.uid == set.UID && a.generation == set.Generation && now.Before(a.until)
}

// record that it did not exist.
func (k *absences) record(set *appsv1beta1.SidecarSet, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= mostRestored {
		k.all = map[string]absence{} // sets come and go
	}
	k.all[set.Name] = absence{set.UID, set.Generation, now.Add(absentFor)}
}

// mostRestored is how many sets are kept in former revisions.
const mostRestored = 1000

// restorations are sets in former revisions, one for each set, which is pinned to one at a time.
type restorations struct {
	mu  sync.Mutex
	all map[string]restoration
}

type restoration struct {
	of       *sidecar.Set
	revision types.UID
	version  string
	set      *sidecar.Set
}

// restore returns a set in a former revision, and keeps it for the next pod.
func (k *restorations) restore(set *sidecar.Set, r *appsv1.ControllerRevision) (*sidecar.Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.all[set.Name()]; ok && have.of == set && have.revision == r.UID && have.version == r.ResourceVersion {
		return have.set, nil
	}
	restored, err := sidecar.Restore(set, r)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if k.all == nil || len(k.all) >= mostRestored {
		k.all = map[string]restoration{} // sets come and go
	}
	k.all[set.Name()] = restoration{of: set, revision: r.UID, version: r.ResourceVersion, set: restored}
	return restored, nil
}

// resolve returns the set as this pod gets it, which may be a former revision.
func (s *sidecars) resolve(ctx context.Context, r *round, set *sidecar.Set) (*sidecar.Set, error) {
	former, err := s.former(ctx, r, set)
	if err != nil {
		return nil, err
	}
	held, err := set.HoldsBack(r.Pod, r.draw(set, former.Name))
	if err != nil || !held {
		return set, err
	}
	return s.restored.restore(set, former)
}

// former returns the revision that a set is pinned to. A revision that the cache lacks is read from the API server,
// because the cache of revisions may be behind that of sets. A revision that the API server lacks too is read again
// only after a pause.
func (s *sidecars) former(ctx context.Context, r *round, set *sidecar.Set) (*appsv1.ControllerRevision, error) {
	find := func(from client.Reader) (*appsv1.ControllerRevision, error) {
		revisions, err := revisionsOf(ctx, from, s.options.Namespace, set)
		if err != nil {
			return nil, &setLookupError{set.Name(), &LookupError{What: "revisions of sidecarset " + set.Name(), Err: err}}
		}
		return sidecar.Former(set, revisions)
	}
	failed := func(err error) bool { return errors.As(err, new(*setLookupError)) }
	former, err := find(s.lookups.Revisions)
	if err == nil || failed(err) || s.lookups.Live == nil || s.absent.known(set.Object(), r.Now) {
		return former, err
	}
	if former, err = find(s.lookups.Live); err != nil && !failed(err) {
		s.absent.record(set.Object(), r.Now)
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
