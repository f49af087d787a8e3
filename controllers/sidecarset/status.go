package sidecarset

import (
	"errors"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
)

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
