package broadcastjob

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/note"
)

// Reasons of events. Others are the codes of notes.
const (
	reasonCreated      = "SuccessfulCreate"
	reasonFailedCreate = "FailedCreate"
	reasonDeleted      = "SuccessfulDelete"
	// reasonFailedDelete and reasonInvalidSpec are not among those of the reference, which emits none.
	reasonFailedDelete = "FailedDelete"
	reasonInvalidSpec  = "InvalidSpec"
)

// emit announces what a pass did, and passes its notes on. Those that a user has to mend are events, once for as long
// as they last.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	r.api.EmitNotes(p.current, p.events...)
	var warnings []note.Note
	var codes []string
	for _, n := range p.decision.Notes {
		if n.Code == broadcast.NoteTooMany || n.Code == broadcast.NoteDuplicate {
			warnings, codes = append(warnings, n), append(codes, n.Code+n.Object)
		}
	}
	if r.emitted.Changed(p.key(), strings.Join(codes, " ")) {
		for _, n := range warnings {
			r.api.Warningf(p.current, n.Code, "%s", n)
		}
	}
	binding.LogNotes(ctx, p.decision.Notes)
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), p.decision.Notes)
	}
}

// reject reports a spec that cannot be used. The job is left as it is until the spec changes.
func (r *Reconciler) reject(s *snapshot) error {
	why := failure.Brief(s.invalid)
	if r.emitted.Changed(s.key(), fmt.Sprint(s.job.Generation, why)) {
		r.api.Warningf(s.job, reasonInvalidSpec, "%v", why)
	}
	return reconcile.TerminalError(why)
}
