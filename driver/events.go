package driver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/note"
)

// EventRecorder emits events. The recorder of a controller-runtime manager and record.EventRecorder of client-go are
// EventRecorders.
type EventRecorder interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// EmitNotes emits notes about an object as events, with their codes as the reasons. One that is blocked is a warning.
func EmitNotes(r EventRecorder, object runtime.Object, notes ...note.Note) {
	for _, n := range notes {
		kind := corev1.EventTypeNormal
		if n.Level == note.Blocked {
			kind = corev1.EventTypeWarning
		}
		r.Event(object, kind, n.Code, n.Text)
	}
}
