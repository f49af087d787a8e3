package containerrecreaterequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// emitted returns the codes of the notes that become events, with the code as the reason. Each comes with a write that
// is made once. The reference emits no such events.
func emitted() []string {
	return []string{containerrestart.NoteEnded, containerrestart.NoteNoGate, containerrestart.NoteUnreadable}
}

// report logs the notes of a plan after its writes, and emits the events.
func (r *Reconciler) report(ctx context.Context, p *plan) {
	binding.LogNotes(ctx, p.Notes)
	for _, note := range p.Notes {
		if slices.Contains(emitted(), note.Code) {
			r.api.Event(p.request, corev1.EventTypeWarning, note.Code, note.Text)
		}
	}
}
