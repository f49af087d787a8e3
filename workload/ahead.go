package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Ahead is what comes before the update of a pod: writes of objects beside the pod, as its volume claims. The instance
// spends of the budget while they are made.
type Ahead struct {
	// Writes are made first, in their order. The update waits then for an observation that shows them made.
	Writes []write.Write
	// Wait is why the update waits; empty where it may begin.
	Wait string
	// Err is why the update is not possible. Other instances take the turn of this one.
	Err error
}

func (a *Ahead) isNothing() bool { return len(a.Writes) == 0 && a.Wait == "" && a.Err == nil }

func (in *Input) ahead(pod *corev1.Pod) Ahead {
	if in.Ahead == nil {
		return Ahead{}
	}
	return in.Ahead(pod)
}

// disrupts reports whether the update of an instance changes a pod now: what comes ahead is made, and a pod has another
// revision.
func (p *Pass) disrupts(i *instance) bool {
	if p.in.Ahead == nil {
		return true
	}
	for _, m := range i.members {
		if a := p.in.ahead(m.pod); a.isNothing() && !p.targetOf(i).matches(p.in.revisionOf(m.pod)) {
			return true
		}
	}
	return false
}

// goAhead returns the next write that comes before the update of a pod, and reports whether the update waits.
func (p *Pass) goAhead(i *instance, m *member) (w *Write, waits bool) {
	a := p.in.ahead(m.pod)
	switch {
	case a.Err != nil:
		p.refrain(i)
		p.fail(Failure{Object: m.pod.Name, Ahead: true, Err: fmt.Errorf("pod %s: %w", m.pod.Name, a.Err)})
		return nil, true
	case int(m.ahead) < len(a.Writes):
		return &Write{Write: a.Writes[m.ahead], Action: ActionAhead}, true
	case a.Wait != "":
		p.note(note.Waiting, NoteAhead, m.pod.Name, a.Wait)
	}
	return nil, !a.isNothing()
}
