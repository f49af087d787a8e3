package containerrecreaterequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// told are the notes that become events, by their code as the reason: each comes with a write that is made once. The
// reference tells none of it.
func told() []string {
	return []string{containerrestart.NoteEnded, containerrestart.NoteNoGate, containerrestart.NoteUnreadable}
}

// report tells why the plan is as it is, after its writes.
func (a *act) report(ctx context.Context) {
	logger := log.FromContext(ctx)
	for _, note := range a.plan.Notes {
		logger.V(1).Info("Note", "code", note.Code, "text", note.Text)
		if slices.Contains(told(), note.Code) {
			a.api.Event(a.request, corev1.EventTypeWarning, note.Code, note.Text)
		}
	}
}
