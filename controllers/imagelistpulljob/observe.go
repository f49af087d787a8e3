package imagelistpulljob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is all that one pass looks at, as it is after the own writes.
type snapshot struct {
	// list with its defaults.
	list *v1beta1.ImageListPullJob
	// invalid is why nothing can be done with the spec.
	invalid error
	now     time.Time
	// jobs that the list controls. One that cannot be decoded has no spec, and hence another image than any that is
	// listed.
	jobs []*v1beta1.ImagePullJob
	// recheckAfter is when to read the list and its jobs again where the cache does not show a write; zero where it
	// does.
	recheckAfter time.Duration
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.list) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.listObjects.Latest(ctx, r.api.Cached, name)
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached:
		r.forget(name)
		return nil, nil
	case latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	list, undecodable, err := stored.DecodeMetadata[v1beta1.ImageListPullJob](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{list: list, now: r.api.Now(), invalid: undecodable, recheckAfter: latest.RecheckAfter}
	if undecodable != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	list.Default()
	if list.Status.CompletionTime != nil {
		return s, nil
	}
	if s.invalid = invalid(list); s.invalid != nil {
		return s, nil //nolint:nilerr // as above
	}
	s.jobs, err = r.observeJobs(ctx, s)
	return s, err
}

func (r *Reconciler) observeJobs(ctx context.Context, s *snapshot) ([]*v1beta1.ImagePullJob, error) {
	cached, err := stored.List(ctx, r.api.Cached, jobKind(), owned.In(s.list.Namespace, s.list.UID)...)
	if err != nil {
		return nil, err
	}
	fresh, recheckAfter, err := r.jobObjects.Writes.Overlay(ctx, s.key(), cached)
	if err != nil {
		return nil, err
	}
	s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
	var jobs []*v1beta1.ImagePullJob
	for _, raw := range fresh {
		if !owned.Controls(s.list, raw) {
			continue
		}
		job, _, err := stored.DecodeMetadata[v1beta1.ImagePullJob](raw)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}
