package broadcastjob

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
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

// Codes of notes that the reconciler looks at. Those of nodes that do not fit are the reasons of package eligible.
const (
	// noteTooMany is a parallelism below the number of pods that are active. None of them is deleted.
	noteTooMany = "TooManyActivePods"
	// noteDuplicate is a pod on a node that has another one.
	noteDuplicate = "DuplicatePodCreatedOnSameNode"
	notePaused    = "Paused"
)

// emit announces what a pass did, and passes its notes on. Those that a user has to mend are events, once for as long
// as they last.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	r.api.EmitNotes(p.job, p.events...)
	var warnings []note.Note
	var codes []string
	for _, n := range p.notes {
		if n.Code == noteTooMany || n.Code == noteDuplicate {
			warnings, codes = append(warnings, n), append(codes, n.Code+n.Object)
		}
	}
	if r.emitted.Changed(p.key(), strings.Join(codes, " ")) {
		for _, n := range warnings {
			r.api.Warningf(p.job, n.Code, "%s", n)
		}
	}
	binding.LogNotes(ctx, p.notes)
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), p.notes)
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
