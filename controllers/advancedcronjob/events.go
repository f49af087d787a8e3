package advancedcronjob

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
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

// emitted are the events that were emitted: about the spec, about a tick, and about a create.
type emitted struct {
	invalid, waiting, failing memory.Texts[types.NamespacedName]
}

func (e *emitted) forget(name types.NamespacedName) {
	e.invalid.Forget(name)
	e.waiting.Forget(name)
	e.failing.Forget(name)
}

// emit announces what a pass did and waits for, and passes its notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	r.emitInvalid(p)
	if p.undecodable == nil {
		r.emitDeleted(p, reasonReplaced, "active", p.replaced)
		r.emitCreated(p)
		r.emitWaiting(p)
		if p.recorded {
			r.emitFinished(p)
		}
		r.emitDeleted(p, reasonDeleted, "finished", p.trimmed)
	}
	binding.LogNotes(ctx, p.Notes)
}

// emitInvalid reports what is wrong with the spec; once, as long as it is the same.
func (r *Reconciler) emitInvalid(p *plan) {
	text := ""
	switch {
	case p.undecodable != nil:
		text = p.undecodable.Error()
	case p.invalid != nil:
		text = p.invalid.Error()
	}
	if r.emitted.invalid.Changed(p.key(), text) {
		r.api.Warningf(p.job, reasonInvalidSpec, "created no children: %s", text)
	}
}

// emitWaiting reports why a tick has no child; once for a tick.
func (r *Reconciler) emitWaiting(p *plan) {
	held := slices.DeleteFunc(slices.Clone(p.Notes), func(n note.Note) bool { return n.Level == note.Info })
	var about strings.Builder
	for _, n := range held {
		about.WriteString(n.Code + " " + p.Held.String() + " ")
	}
	if r.emitted.waiting.Changed(p.key(), about.String()) {
		r.api.EmitNotes(p.job, held...)
	}
}

// emitCreated reports the child of a tick, or that it could not be created; the latter once for a text.
func (r *Reconciler) emitCreated(p *plan) {
	switch {
	case p.failure != nil:
		if text := p.failure.Error(); r.emitted.failing.Changed(p.key(), text) {
			r.api.Warningf(p.job, reasonFailedCreate, "failed to create %s %s: %s", p.kind.name, p.create.GetName(), text)
		}
	case p.isNew:
		r.emitted.failing.Changed(p.key(), "")
		r.api.Normalf(p.job, reasonCreated, "Created %s %s", p.kind.name, p.create.GetName())
	}
}

func (r *Reconciler) emitDeleted(p *plan, reason, what string, n int) {
	if n > 0 {
		r.api.Normalf(p.job, reason, "Deleted %s %ss: %d", what, p.kind.name, n)
	}
}

// emitFinished reports the children that have ended since the status was written.
func (r *Reconciler) emitFinished(p *plan) {
	for _, c := range finished(p.snapshot) {
		r.api.Normalf(p.job, reasonFinished, "Saw completed %s %s, condition: %s", p.kind.name, c.GetName(), c.state)
	}
}
