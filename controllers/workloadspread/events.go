package workloadspread

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// noteNotPatched is the event of a pod whose deletion cost cannot be written.
const noteNotPatched = "PatchPodDeletionCostFailed"

// emitFailure emits the event of a pod that cannot be written.
func (r *Reconciler) emitFailure(s *snapshot, w *write.Write, err error) {
	pod, is := w.Object.(*corev1.Pod)
	switch {
	case !is || err == nil || write.IsOutdated(err): // the event of the change brings the next pass
	case w.Verb == write.Patch:
		r.api.Warningf(s.spread, noteNotPatched, "Failed to patch pod %s: %v", pod.Name, err)
	case w.Verb == write.Delete:
		r.api.Warningf(s.spread, subset.NoteNotDeleted, "Failed to delete pod %s, which finds no node: %v", pod.Name, err)
	}
}

// about is one reason of one WorkloadSpread.
type about struct {
	spread types.NamespacedName
	code   string
}

// reported are the codes of notes on a state, whose event is emitted once until the reason is gone.
func reported() []string {
	return []string{
		noteInvalid, noteBadPatch, noteBadPath, subset.NoteUnreadable, subset.NoteUnknownReplicas, subset.NoteTooManyVersions,
	}
}

// emit emits the events of a pass, after its writes.
func (r *Reconciler) emit(s *snapshot, p *pass) {
	texts := map[string]string{}
	for _, n := range p.notes {
		switch n.Code {
		case subset.NoteNotCreated, subset.NoteNotDeleted:
			r.api.Event(s.spread, corev1.EventTypeWarning, n.Code, n.Text)
		case subset.NoteRecovered:
			r.api.Event(s.spread, corev1.EventTypeNormal, n.Code, n.Text)
		default:
			if n.Level == note.Blocked && texts[n.Code] == "" {
				texts[n.Code] = n.Text
			}
		}
	}
	for _, code := range reported() {
		if r.emitted.Changed(about{s.key(), code}, texts[code]) {
			r.api.Event(s.spread, corev1.EventTypeWarning, code, texts[code])
		}
	}
}
