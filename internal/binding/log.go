package binding

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/note"
)

// LogNotes logs why a plan is as it is, for those who ask for it by the verbosity.
func LogNotes(ctx context.Context, notes []note.Note) {
	logger := log.FromContext(ctx).V(1)
	if !logger.Enabled() {
		return
	}
	for _, n := range notes {
		logger.Info("Note", "code", n.Code, "object", n.Object, "text", n.Text)
	}
}
