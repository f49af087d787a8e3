package sidecarset

import (
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/history"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*rollout.Change]
	step = driver.Step[*rollout.Change]
)

// plan is what one pass of a set is to do. All of it follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	// newest is the revision of the set as it is, store the pass that keeps it, and pods the pass over the pods. They are
	// nil for a set that cannot be decoded.
	newest revision.Resolution
	store  *revision.Storage
	pods   *rollout.Pass
	// unread is what of the spec, or of pods, cannot be read.
	unread error
	// status writes the status; nil where the status stays the same, or is not known.
	status pass
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
	p.pods, p.unread = rollout.Plan(rollout.Input{
		Set: s.set, Revision: p.newest.Name, Pods: slices.Concat(slices.Collect(maps.Values(s.pods))...),
		Namespaces: s.namespaces, Now: s.now, Gone: s.gone, May: o.MayUpdate, Held: s.held,
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
	in := revision.Input{
		Owner: s.set.Name, Data: data, Have: s.history, Collisions: s.set.Status.CollisionCount, Same: history.Same,
	}
	return revision.Wanted{
		Resolution: revision.Resolve(in), Same: history.Same, Data: data,
		Namespace: namespace, Owner: *metav1.NewControllerRef(s.set, gvk()),
		Labels: s.set.Labels, Annotations: s.set.Annotations,
		Select: map[string]string{v1beta1.SidecarSetNameLabel: s.set.Name}, NewestLabels: version,
	}, nil
}

// pass is all that is written: the revision, the pods, the status, and then what is not needed any more.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: p.revise},
		step{Plan: p.update},
		step{Plan: p.report, Required: true},
		step{Plan: p.trim},
	)
}

// as returns a pass of plain writes as a part of the pass of a set.
func as(plain driver.Pass[*write.Write]) pass {
	return driver.Lift(plain, func(w *write.Write) *rollout.Change { return &rollout.Change{Write: *w} })
}

func (p *plan) revise() (pass, error) {
	if p.store == nil {
		return nil, nil
	}
	return as(p.store), nil
}

func (p *plan) update() (pass, error) {
	if !p.isStored() {
		return nil, nil
	}
	return p.pods, nil
}

// trim deletes the revisions beyond the limit. Without a readable spec the revisions of the pods are not known.
func (p *plan) trim() (pass, error) {
	if !p.isStored() || p.specError() != nil {
		return nil, nil //nolint:nilerr // the reconciler reports it
	}
	stored := p.store.Stored(p.history)
	surplus := history.Surplus(p.set, stored, p.newest.Name, p.pods.Result().Revisions)
	return as(driver.Writes(write.Deletions(surplus)...)), nil
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

// specError is what of the spec cannot be read; nil for nothing.
func (p *plan) specError() error {
	if spec := (*rollout.SpecError)(nil); errors.As(p.unread, &spec) {
		return spec
	}
	return nil
}
