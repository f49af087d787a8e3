package broadcastjob

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// emitTurn announces what the status changes in the life of the job.
func (p *pass) emitTurn() {
	turn := p.plan.Turn
	switch {
	case turn == nil:
	case turn.Level == note.Blocked:
		p.api.Warningf(p.job, turn.Code, "%s", turn.Text)
	default:
		p.api.Normalf(p.job, turn.Code, "%s", turn.Text)
	}
}

// emitFailure emits the first of the errors of a pass. In a namespace that is being deleted all pods are rejected, as expected.
func (p *pass) emitFailure(reason, what string, err error) {
	parts := failure.Parts(err)
	if len(parts) == 0 || apierrors.HasStatusCause(parts[0], corev1.NamespaceTerminatingCause) {
		return
	}
	text := fmt.Sprintf("%s: %s", what, failure.Brief(parts[0]))
	if more := len(parts) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	p.api.Warningf(p.job, reason, "%s", text)
}

// emitNotes passes the notes on. Those that a user has to mend are events, once for as long as they last.
func (p *pass) emitNotes(ctx context.Context) {
	var warnings []note.Note
	var codes []string
	for _, n := range p.plan.Notes {
		if n.Code == broadcast.NoteTooMany || n.Code == broadcast.NoteDuplicate {
			warnings, codes = append(warnings, n), append(codes, n.Code+n.Object)
		}
	}
	if p.emitted.Changed(p.key(), strings.Join(codes, " ")) {
		for _, n := range warnings {
			p.api.Warningf(p.job, n.Code, "%s", n)
		}
	}
	binding.LogNotes(ctx, p.plan.Notes)
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.key(), p.plan.Notes)
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
