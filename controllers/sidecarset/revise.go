package sidecarset

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/revision"
	sidecarhistory "github.com/kruisekit/kruisekit/controllers/sidecarset/history"
)

// wanted returns the newest revision: the set as it is now.
func (s *snapshot) wanted(namespace string) (history.Wanted, error) {
	data, err := sidecarhistory.Encode(s.set)
	if err != nil {
		return history.Wanted{}, err
	}
	version := map[string]string{}
	if v := s.set.Spec.CustomVersion; v != "" {
		version[v1beta1.SidecarSetCustomVersionLabel] = v
	}
	in := revision.Input{Owner: s.set.Name, Data: data, Have: s.history, Collisions: s.set.Status.CollisionCount}
	return history.Wanted{
		Resolution: history.Resolve(in, sidecarhistory.Same), Same: sidecarhistory.Same, Data: data,
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
	change, err := history.Plan(wanted)
	if err != nil {
		return err
	}
	written, err := p.revisions.Ensure(ctx, p.key(), change)
	if errors.As(err, new(*history.TakenError)) { // the next pass tries another name
		fresh := *p.set
		fresh.Status.CollisionCount = ptr.To(ptr.Deref(fresh.Status.CollisionCount, 0) + 1)
		return errors.Join(err, p.writeStatus(ctx, &fresh))
	}
	p.history = history.Replace(p.history, written)
	return err
}

// trim deletes the revisions beyond the limit.
func (p *pass) trim(ctx context.Context) error {
	return p.revisions.Delete(ctx, p.key(), sidecarhistory.Surplus(p.set, p.history, p.resolution.Name, p.plan.Result().Revisions))
}
