package sidecarset

import (
	"errors"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// report returns the write of the status, if the status changed.
func (p *plan) report() (pass, error) {
	status, known := p.reported()
	if !known {
		return nil, nil
	}
	fresh := *p.set
	fresh.Status = status
	required := map[string]any{ // by the schema
		"matchedPods": status.MatchedPods, "updatedPods": status.UpdatedPods, "readyPods": status.ReadyPods,
	}
	w, err := statuspatch.Write(stored.Kind{GVK: gvk()}, p.set, &fresh, required)
	if err != nil || w == nil {
		return nil, err
	}
	p.status = as(driver.Writes(w))
	return p.status, nil
}

// reported is the status of the pods as the answers left them. Without a revision it is that of the last pass.
func (p *plan) reported() (status v1beta1.SidecarSetStatus, known bool) {
	status = p.set.Status
	switch {
	case p.rejected() != nil:
		status.ObservedGeneration = p.set.Generation
	case p.isStored():
		status = p.pods.Status()
		status.CollisionCount = ptr.To(ptr.Deref(p.newest.Collisions, 0))
	case errors.As(p.store.Err(), new(*revision.TakenError)): // the next pass tries another name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	default:
		return status, false
	}
	return status, true
}
