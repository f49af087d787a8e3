package sidecarset

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	sidecarhistory "github.com/kruisekit/kruisekit/controllers/sidecarset/internal/history"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// wanted returns the newest revision: the set as it is now.
func (s *snapshot) wanted(namespace string) (revision.Wanted, error) {
	data, err := sidecarhistory.Encode(s.set)
	if err != nil {
		return revision.Wanted{}, err
	}
	version := map[string]string{}
	if v := s.set.Spec.CustomVersion; v != "" {
		version[v1beta1.SidecarSetCustomVersionLabel] = v
	}
	in := revision.Input{
		Owner: s.set.Name, Data: data, Have: s.history, Collisions: s.set.Status.CollisionCount, Same: sidecarhistory.Same,
	}
	return revision.Wanted{
		Resolution: revision.Resolve(in), Same: sidecarhistory.Same, Data: data,
		Namespace: namespace, Owner: *metav1.NewControllerRef(s.set, gvk()),
		Labels: s.set.Labels, Annotations: s.set.Annotations,
		Select: map[string]string{v1beta1.SidecarSetNameLabel: s.set.Name}, NewestLabels: version,
	}, nil
}

// revise makes the set as it is now the newest of its revisions.
func (p *pass) revise(ctx context.Context) error {
	wanted, err := p.wanted(p.options.Namespace)
	if err != nil {
		return err
	}
	p.resolution = wanted.Resolution
	store, err := revision.Store(wanted)
	if err != nil {
		return err
	}
	err = p.api.Run(ctx, p.key(), store, p.revisions)
	if errors.As(err, new(*revision.TakenError)) { // the next pass tries another name
		fresh := *p.set
		fresh.Status.CollisionCount = ptr.To(ptr.Deref(fresh.Status.CollisionCount, 0) + 1)
		return errors.Join(err, p.writeStatus(ctx, &fresh))
	}
	p.history = store.Stored(p.history)
	return err
}

// trim deletes the revisions beyond the limit.
func (p *pass) trim(ctx context.Context) error {
	surplus := sidecarhistory.Surplus(p.set, p.history, p.resolution.Name, p.plan.Result().Revisions)
	return p.api.Run(ctx, p.key(), driver.Writes(write.Deletions(surplus)...), p.revisions)
}
