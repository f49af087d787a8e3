package persistentpodstate

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/note"
)

// The reasons of events, next to the codes of package podstate.
const (
	// reasonOccupied is a PersistentPodState in place of the one that a workload asks for.
	reasonOccupied = "NotGenerated"
	textOccupied   = "The workload asks for a PersistentPodState of this name, which the workload does not control; " +
		"this one stays as it is"
	// reasonRejected is a PersistentPodState that the API server rejects, in an event about the workload.
	reasonRejected = "FailedGenerate"
	// reasonRecreates is a pod that waited for labels that no node has.
	reasonRecreates = "DeletedPod"
	textRecreates   = "Deleted pod %s, which waited for labels that no node has; the workload creates the pod again"
	// reasonTooLarge is a status that is not written.
	reasonTooLarge = "TooManyRecords"
	// reasonUnsupported is a workload that cannot be read.
	reasonUnsupported = "UnsupportedTarget"
	textUnsupported   = "kind %s is not watched: it must be installed and in " + kruise.PersistentPodStateWhiteListKey +
		" of ConfigMap " + kruise.ConfigurationName + ", and the manager needs the right to list and watch it"
)

// emit emits the notes of a pass as events. Of several notes with the same code, it emits the first. It emits a warning
// once until a pass has none.
func (r *Reconciler) emit(s *snapshot, p *plan) {
	warned := map[string]bool{}
	for _, n := range p.notes {
		var object runtime.Object = s.state
		if n.Code == reasonRejected {
			object = s.generation.Asker
		}
		if n.Object != "" {
			n.Text = "Pod " + n.Object + ": " + n.Text
		}
		switch {
		case n.Code == podstate.NoteReleased:
			r.api.EmitNotes(object, n)
		case n.Level == note.Blocked && !warned[n.Code]:
			warned[n.Code] = true
			if r.emitted.First(s.name, n.Code+n.Text) {
				r.api.EmitNotes(object, n)
			}
		}
	}
	if len(warned) == 0 {
		r.emitted.Forget(s.name)
	}
}
