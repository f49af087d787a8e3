package podunavailablebudget

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
)

// emitter emits the events of budgets, each once until its reason is gone.
type emitter struct {
	api     *binding.Binding
	emitted memory.Texts[about]
}

// about is one reason of one budget.
type about struct {
	budget types.NamespacedName
	code   string
}

// reported are the codes of notes on a budget that are events.
func reported() []string {
	return []string{
		pub.NoteUnreadable, pub.NoteNoAmount, pub.NoteUnknownReplicas, pub.NoteNoneAllowed, pub.NoteNoPods,
		pub.NoteScaledDown,
	}
}

// emit emits what a pass found.
func (e *emitter) emit(s *snapshot, p *plan) {
	texts := map[string]note.Note{}
	for _, n := range p.notes {
		if _, more := texts[n.Code]; !more {
			texts[n.Code] = n
		}
	}
	for _, code := range reported() {
		n := texts[code]
		if !e.emitted.Changed(about{s.key(), code}, n.Text) {
			continue
		}
		kind := corev1.EventTypeNormal
		if n.Level == note.Blocked {
			kind = corev1.EventTypeWarning
		}
		e.api.Event(s.object, kind, code, n.Text)
	}
	for _, n := range p.notes {
		if n.Code == pub.NoteNotDeleted {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.budget.Namespace, Name: n.Object, UID: p.notDeleted[n.Object],
			}}
			e.api.Event(pod, corev1.EventTypeWarning, n.Code, n.Text)
		}
	}
}

// forget drops what was emitted about a budget that is gone.
func (e *emitter) forget(budget types.NamespacedName) {
	for _, code := range reported() {
		e.emitted.Forget(about{budget, code})
	}
}
