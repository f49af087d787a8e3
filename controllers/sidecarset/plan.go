package sidecarset

import (
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/history"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what one pass of a set is to do. All of it follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	// newest is the revision of the set as it is, store the pass that keeps it, and rollout the pass over the pods. They
	// are nil for a set that cannot be decoded.
	newest  revision.Resolution
	store   *revision.Storage
	rollout *rollout.Pass
	// unread is why the spec, or pods, cannot be read.
	unread error
	// unreported is the failure of the write of the status.
	unreported error
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	p := &plan{snapshot: s}
	if s.malformed != nil {
		return p, nil //nolint:nilerr // the pass refuses the set
	}
	wanted, err := s.wanted(o.Namespace)
	if err != nil {
		return nil, err
	}
	p.newest = wanted.Resolution
	if p.store, err = revision.Store(wanted); err != nil {
		return nil, err
	}
	p.rollout, p.unread = rollout.Plan(rollout.Input{
		Set: s.set, Revision: p.newest.Name, Pods: s.pods,
		Namespaces: s.namespaces, Now: s.now, Held: s.held,
	})
	return p, nil
}

// wanted returns the newest revision: the set as it is now.
func (s *snapshot) wanted(namespace string) (revision.Wanted, error) {
	data, err := history.Encode(s.set)
	if err != nil {
		return revision.Wanted{}, err
	}
	version := map[string]string{}
	if v := s.set.Spec.CustomVersion; v != "" {
		version[v1beta1.SidecarSetCustomVersionLabel] = v
	}
	annotations := maps.Clone(s.set.Annotations)
	delete(annotations, revision.UnknownFieldsKey) // they are in the data
	in := revision.Input{
		Owner: s.set.Name, Data: data, Have: s.history, Collisions: s.set.Status.CollisionCount, Same: history.Same,
	}
	return revision.Wanted{
		Resolution: revision.Resolve(in), Namespace: namespace, Owner: *metav1.NewControllerRef(s.set, gvk()),
		Labels: s.set.Labels, Annotations: annotations,
		Select: map[string]string{v1beta1.SidecarSetNameLabel: s.set.Name}, NewestLabels: version,
	}, nil
}

// trim deletes the revisions beyond the limit. Without a readable spec the revisions of the pods are not known.
func (p *plan) trim() []*write.Write {
	if !p.isStored() || p.specError() != nil {
		return nil
	}
	stored := p.store.Stored(p.history)
	return write.Deletions(history.Surplus(p.set, stored, p.newest.Name, p.rollout.Result().Revisions))
}

// isStored reports whether the set has its revision. Without it only the status is written.
func (p *plan) isStored() bool { return p.store != nil && p.store.Err() == nil }

// rejected is why the set cannot be reconciled until its spec changes: it cannot be decoded, or the API server rejects
// its revision, as of a custom version that is no label.
func (p *plan) rejected() error {
	if p.store != nil && apierrors.IsInvalid(p.store.Err()) {
		return p.store.Err()
	}
	return p.malformed
}

// specError is why the spec cannot be read; nil for nothing.
func (p *plan) specError() error {
	if spec := (*rollout.SpecError)(nil); errors.As(p.unread, &spec) {
		return spec
	}
	return nil
}

// reported is the status of the pods as they were observed: the pass that follows the writes reports these. Without a
// revision the status is that of the last pass.
func (p *plan) reported() (status v1beta1.SidecarSetStatus, known bool) {
	status = p.set.Status
	switch {
	case p.rejected() != nil:
		status.ObservedGeneration = p.set.Generation
	case p.isStored():
		status = p.rollout.Result().Status
		status.CollisionCount = ptr.To(ptr.Deref(p.newest.Collisions, 0))
	case errors.As(p.store.Err(), new(*revision.TakenError)): // the next pass tries another name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	default:
		return status, false
	}
	return status, true
}
