package nodeimage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of events.
const (
	// reasonPullFailed is also the reason of a daemon for a pull that failed.
	reasonPullFailed = "PullImageFailed"
	// reasonInvalidSpec is not among the reference's, which stops working.
	reasonInvalidSpec = "InvalidSpec"
)

// emit announces which part of the NodeImage cannot be decoded, and where pulls were ended, these pulls, for the
// NodeImage and for the owners of the tags. It passes the notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan, ended bool) {
	if p.malformed != nil {
		r.api.Event(p.image, corev1.EventTypeWarning, reasonInvalidSpec, p.malformed.Error())
	}
	if ended {
		for i := range p.decision.Failures {
			f := &p.decision.Failures[i]
			const text = "image %s is not pulled on node %s: %s"
			for j := range f.Owners {
				r.api.Warningf(&f.Owners[j], reasonPullFailed, text, f.Reference, p.name, f.Message)
			}
			r.api.Warningf(p.image, reasonPullFailed, text, f.Reference, p.name, f.Message)
		}
	}
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.name, p.decision.Notes)
	}
}
