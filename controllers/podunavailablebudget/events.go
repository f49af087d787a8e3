package podunavailablebudget

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
)

// reported are the codes of notes on a budget that are events.
func reported() []string {
	return []string{
		pub.NoteUnreadable, pub.NoteNoAmount, pub.NoteUnknownReplicas, pub.NoteNoneAllowed, pub.NoteNoPods,
		pub.NoteScaledDown,
	}
}

// emit emits what a pass found: of a budget the first note of each code, when one of these notes changes.
func (r *Reconciler) emit(s *snapshot, p *plan) {
	var found []note.Note
	text := ""
	for _, n := range p.notes {
		known := slices.ContainsFunc(found, func(other note.Note) bool { return other.Code == n.Code })
		switch {
		case n.Code == pub.NoteNotDeleted:
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.budget.Namespace, Name: n.Object, UID: p.notDeleted[n.Object],
			}}
			r.api.Event(pod, corev1.EventTypeWarning, n.Code, n.Text)
		case !known && slices.Contains(reported(), n.Code):
			found, text = append(found, n), text+n.Code+n.Text
		}
	}
	if r.emitted.Changed(s.key(), text) {
		r.api.EmitNotes(s.object, found...)
	}
}
