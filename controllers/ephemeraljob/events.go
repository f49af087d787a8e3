package ephemeraljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
)

// reasonInvalidSpec is the reason of an event: the spec cannot work. The reference emits none.
const reasonInvalidSpec = "InvalidSpec"

// emit announces the end of a job, and refusals, each pod once. It passes the notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan, reported bool) {
	var notes []note.Note
	if p.turn != nil && reported {
		notes = append(notes, *p.turn)
		r.api.EmitNotes(p.job, notes...)
	}
	if all := p.newlyRefused; len(all) > 0 {
		first := slices.MinFunc(all, func(a, b note.Note) int { return cmp.Compare(a.Object, b.Object) })
		text := fmt.Sprintf("Error adding containers to pod %s: %s", first.Object, first.Text)
		if more := len(all) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more pods)", more)
		}
		r.api.Warningf(p.job, v1alpha1.EJobReasonCreateFailed, "%s", text)
	}
	invalid := ""
	if p.invalid != nil {
		invalid = p.invalid.Error()
	}
	if r.emitted.Changed(p.key(), invalid) {
		r.api.Warningf(p.job, reasonInvalidSpec, "%s", invalid)
	}
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), notes)
	}
}
