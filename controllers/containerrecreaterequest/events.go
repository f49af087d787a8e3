package containerrecreaterequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// emitted returns the codes of the notes that become events, with the code as the reason. Each comes with a write that
// is made once. The reference emits no such events.
func emitted() []string {
	return []string{containerrestart.NoteEnded, containerrestart.NoteNoGate, containerrestart.NoteUnreadable}
}

// report logs the notes of a plan after its writes, and emits the events.
func (r *Reconciler) report(ctx context.Context, p *plan) {
	logger := log.FromContext(ctx)
	for _, note := range p.Notes {
		logger.V(1).Info("Note", "code", note.Code, "text", note.Text)
		if slices.Contains(emitted(), note.Code) {
			r.api.Event(p.request, corev1.EventTypeWarning, note.Code, note.Text)
		}
	}
}
