package imagelistpulljob

import (
	"context"
	"strings"

	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// Reasons of events. The first two are the reference's.
const (
	reasonCreated      = "Successful create ImagePullJob"
	reasonDeleted      = "Successful delete ImagePullJob"
	reasonFailedCreate = "FailedCreate"
	reasonInvalidSpec  = "InvalidSpec"
)

// emit announces what became of the jobs, and passes the notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	if !p.runs {
		return
	}
	r.emitInvalid(p.snapshot, p.invalidParts())
	if p.notCreated != nil {
		first, _, _ := strings.Cut(p.notCreated.Error(), "\n") // an event has no room for one of each image
		r.api.Warningf(p.list, reasonFailedCreate, "failed to create ImagePullJobs: %s", first)
	} else if p.created > 0 && !p.met {
		r.api.Normalf(p.list, reasonCreated, "created ImagePullJobs: %d", p.created)
	}
	if p.deleted > 0 && p.notDeleted == nil {
		r.api.Normalf(p.list, reasonDeleted, "deleted ImagePullJobs: %d", p.deleted)
	}
	binding.LogNotes(ctx, p.Notes)
}

// invalidParts are the images that are skipped, and why.
func (p *plan) invalidParts() string {
	var all []string
	for _, n := range p.Notes {
		if n.Code == imagepull.NoteBadImage {
			all = append(all, n.Text)
		}
	}
	return strings.Join(all, "; ")
}

// emitInvalid reports what is invalid in the spec; once, for as long as the text is the same. Empty is nothing.
func (r *Reconciler) emitInvalid(s *snapshot, text string) {
	if r.emitted.Changed(s.key(), text) {
		r.api.Warningf(s.list, reasonInvalidSpec, "%s", text)
	}
}
