package podscope

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	text := fmt.Sprint(notes)
	if text == r.reported {
		return
	}
	r.reported = text
	for _, n := range notes {
		log.FromContext(ctx).Info("Found entries that differ from what the sets select",
			"reason", n.Code, "object", n.Object, "note", n.Text)
		r.event(about, reasonNote, fmt.Sprintf("%s: %s", n.Object, n.Text))
	}
}

// announce emits what a write has done.
func (r *Reconciler) announce(ctx context.Context, about *configuration, notes []note.Note) {
	for _, n := range notes {
		log.FromContext(ctx).Info("Repaired entries", "reason", n.Code, "object", n.Object, "note", n.Text)
		r.event(about, reasonUndone, n.Text)
	}
}

// event emits an event about the configuration of pods; nil where it does not exist.
func (r *Reconciler) event(about *configuration, reason, text string) {
	if about == nil {
		about = &configuration{}
		about.Name = r.options.Configuration
	}
	var object runtime.Object = about
	if r.form.disruptions {
		object = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: about.ObjectMeta}
	}
	r.options.Recorder.Event(object, corev1.EventTypeWarning, reason, failure.BriefText(text))
}
