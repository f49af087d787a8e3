package advancedcronjob

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/note"
)

// Reasons of events; others are the codes of notes. Those of the CronJobs of Kubernetes have the same meaning here.
const (
	reasonCreated      = "SuccessfulCreate"
	reasonFailedCreate = "FailedCreate"
	reasonDeleted      = "SuccessfulDelete"
	reasonReplaced     = "Replaced"
	reasonFinished     = "SawCompletedJob"
	reasonInvalidSpec  = "InvalidSpec"
)

// emit announces what a pass did and waits for, and passes its notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	r.emitBlocked(p)
	if p.undecodable == nil {
		r.emitDeleted(p, reasonReplaced, "active", p.replaced)
		r.emitCreated(p)
		if p.recorded {
			for _, c := range finished(p.snapshot) {
				r.api.Normalf(p.job, reasonFinished, "Saw completed %s %s, condition: %s", p.kind.name, c.GetName(), c.state)
			}
		}
		r.emitDeleted(p, reasonDeleted, "finished", p.trimmed)
	}
	binding.LogNotes(ctx, p.Notes)
}

// emitBlocked reports what is wrong with the spec, or why a tick has no child; each once, as long as it is the same.
func (r *Reconciler) emitBlocked(p *plan) {
	held := slices.DeleteFunc(slices.Clone(p.Notes), func(n note.Note) bool { return n.Level == note.Info })
	if err := cmp.Or(p.undecodable, p.invalid); err != nil {
		held = []note.Note{{
			Level: note.Blocked, Code: reasonInvalidSpec, Text: "created no children: " + err.Error(),
		}}
	}
	var about strings.Builder
	for _, n := range held {
		about.WriteString(n.Code + " " + p.Held.String() + " ")
		if n.Code == reasonInvalidSpec {
			about.WriteString(n.Text)
		}
	}
	if r.emitted.Changed(p.key(), about.String()) {
		r.api.EmitNotes(p.job, held...)
	}
}

// emitCreated reports the child of a tick, or that it could not be created.
func (r *Reconciler) emitCreated(p *plan) {
	switch {
	case p.failure != nil:
		r.api.Warningf(p.job, reasonFailedCreate, "failed to create %s %s: %v", p.kind.name, p.create.GetName(), p.failure)
	case p.isNew:
		r.api.Normalf(p.job, reasonCreated, "Created %s %s", p.kind.name, p.create.GetName())
	}
}

func (r *Reconciler) emitDeleted(p *plan, reason, what string, n int) {
	if n > 0 {
		r.api.Normalf(p.job, reason, "Deleted %s %ss: %d", what, p.kind.name, n)
	}
}
