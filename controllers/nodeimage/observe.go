package nodeimage

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at.
type snapshot struct {
	name string
	now  time.Time
	// node is the cache's, and only read; nil for none.
	node *corev1.Node
	// image as it is after the own writes; nil for none.
	image *v1beta1.NodeImage
	// malformed says which part of the image cannot be decoded and is left out.
	malformed error
	// recheckAfter is when to read the image again where the cache lacks it; zero where it does not.
	recheckAfter time.Duration
	// jobless means that there are no pull jobs in this cluster.
	jobless bool
	// gone are the owners and secrets that the image names and that do not exist.
	gone map[identity]bool
	// failed is why other owners and secrets could not be looked up. They count as existing.
	failed error
	// lags is set where the cache lacks the node of the image, and the API server has it.
	lags bool
}

// observe makes the snapshot; nil when there is nothing of that name.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	s := &snapshot{name: name, now: r.api.Now(), jobless: r.jobless, gone: map[identity]bool{}}
	var err error
	if s.node, err = stored.Find[corev1.Node](ctx, r.api.Client, s.key()); err != nil {
		return nil, err
	}
	latest, err := r.images.Latest(ctx, r.api.Cached, s.key())
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached && s.node == nil:
		r.images.Writes.Forget(s.key())
		return nil, nil
	case latest.Object == nil:
		return s, nil
	}
	s.recheckAfter = latest.RecheckAfter
	if s.image, s.malformed, err = stored.DecodeMetadata[v1beta1.NodeImage](latest.Object); err != nil {
		return nil, err
	}
	for _, id := range s.references(r.options.SecretNamespace) {
		gone, err := r.isGone(ctx, id)
		s.gone[id], s.failed = gone, errors.Join(s.failed, err)
	}
	if s.node == nil {
		node, err := stored.Metadata(ctx, r.api.Live, corev1.SchemeGroupVersion.WithKind("Node"), s.key())
		if s.lags = node != nil && node.DeletionTimestamp == nil; err != nil {
			return nil, err
		}
	}
	return s, nil
}

// references returns the owners and secrets that the image names. Of secrets in other namespaces nothing is known.
func (s *snapshot) references(secretNamespace string) (all []identity) {
	for _, image := range s.image.Spec.Images {
		for _, ref := range image.PullSecrets {
			if ref.Namespace == secretNamespace && ref.Mode != v1beta1.ReferenceObjectModeBatch {
				all = append(all, secretOf(ref))
			}
		}
		for _, tag := range image.Tags {
			for _, ref := range tag.OwnerReferences {
				if ref.Kind == jobKind().Kind && !s.jobless {
					all = append(all, jobOf(ref))
				}
			}
		}
	}
	return all
}

// isGone reports whether a job or a secret does not exist. The API server has the last word, because a cache may lag.
// An object that the API server does not allow to be read exists: another question would not help. Answers are
// remembered for the other nodes, except for a secret that is gone, because it may be created again.
func (r *Reconciler) isGone( //nolint:gocyclo // one look after the other
	ctx context.Context, id identity,
) (bool, error) {
	if !possible(id.name) {
		return true, nil
	}
	if fact, known := r.facts.Get(id); known {
		return fact == true, nil
	}
	isJob := id.kind == jobKind()
	if isJob { // a namespace that the cache leaves out may have one that the cache lacks
		job, err := stored.Metadata(ctx, r.api.Cached, id.kind, id.name)
		if err == nil && job != nil && job.UID == id.uid {
			return false, nil
		}
	}
	object, err := stored.Metadata(ctx, r.api.Live, id.kind, id.name)
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err)
	if err != nil && !refused {
		return false, err
	}
	gone := !refused && (object == nil || isJob && object.UID != id.uid)
	if isJob || !gone {
		r.facts.Add(id, gone, remember)
	}
	return gone, nil
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return types.NamespacedName{Name: s.name} }

const (
	// remember is for how long an answer of the API server counts.
	remember = 5 * time.Minute
	// maxFacts bounds how many objects are remembered.
	maxFacts = 1 << 16
)

// clock is the clock of a cache.
type clock func() time.Time

// Now returns the time.
func (c clock) Now() time.Time { return c() }
