package ephemeraljob

import (
	"context"
	"fmt"

	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// reasonInvalidSpec is the reason of an event: the spec cannot work. The reference emits none.
const reasonInvalidSpec = "InvalidSpec"

// emit announces the end of a job, and refusals, each pod once. It passes the notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	if turn := p.outcome.Turn; turn != nil && p.reported {
		r.api.EmitNotes(p.current, *turn)
	}
	if all := p.outcome.NewlyRefused; len(all) > 0 {
		text := fmt.Sprintf("Error adding containers to pod %s: %s", all[0].Object, all[0].Text)
		if more := len(all) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more pods)", more)
		}
		r.api.Warningf(p.current, ephemeral.NoteRefused, "%s", text)
	}
	invalid, notes := "", p.decision.Notes()
	for _, n := range notes {
		if n.Code == ephemeral.NoteInvalid {
			invalid = n.Text
		}
	}
	if r.emitted.Changed(p.key(), invalid) {
		r.api.Warningf(p.current, reasonInvalidSpec, "%s", invalid)
	}
	binding.LogNotes(ctx, notes)
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), notes)
	}
}
