package podscope

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/note"
)

const (
	reasonUndone = "PodScopeUndone"
	reasonNote   = "PodScopeNote"
)

// report emits the notes when they change.
func (r *Reconciler) report(ctx context.Context, about *configuration, notes []note.Note) {
	if text := fmt.Sprint(notes); text != r.reported {
		r.reported = text
		r.emit(ctx, about, reasonNote, notes)
	}
}

// emit emits notes as events about the configuration of pods; nil where it does not exist.
func (r *Reconciler) emit(ctx context.Context, about *configuration, reason string, notes []note.Note) {
	object := r.form.empty()
	object.SetName(r.options.Configuration)
	if about != nil {
		object.SetUID(about.UID)
	}
	for _, n := range notes {
		log.FromContext(ctx).Info("Found entries that differ from what the objects ask for",
			"reason", n.Code, "object", n.Object, "note", n.Text)
		text := failure.BriefText(fmt.Sprintf("%s: %s", n.Object, n.Text))
		r.options.Recorder.Event(object, corev1.EventTypeWarning, reason, text)
	}
}
