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
	pod, ok := w.Object.(*corev1.Pod)
	switch {
	case !ok || s.spread == nil:
	case w.Verb == write.Patch:
		r.api.Warningf(s.spread, noteNotPatched, "Failed to patch pod %s: %v", pod.Name, err)
	case w.Verb == write.Delete:
		r.api.Warningf(s.spread, subset.NoteNotDeleted, "Failed to delete pod %s, which finds no node: %v", pod.Name, err)
	}
}

// emit emits the events of a reconcile, after its writes. The event of a note that blocks is emitted once, until a
// reconcile has none.
func (r *Reconciler) emit(name types.NamespacedName, s *snapshot, notes []note.Note) {
	blocked := false
	for _, n := range notes {
		switch {
		case n.Code == subset.NoteRecovered:
			r.api.Event(s.spread, corev1.EventTypeNormal, n.Code, n.Text)
			continue
		case n.Level == note.Blocked:
			if blocked = true; !r.emitted.First(name, n.Code+n.Text) {
				continue
			}
		}
		r.api.Event(s.spread, corev1.EventTypeWarning, n.Code, n.Text)
	}
	if !blocked {
		r.emitted.Forget(name)
	}
}
