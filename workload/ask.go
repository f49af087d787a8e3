package workload

import (
	"errors"
	"fmt"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// RefusedError is the answer to a question that admits some of its pods, or none.
type RefusedError struct {
	// Admitted counts the pods, from the first one on, that may be disrupted.
	Admitted int
	// Reason is why the next pod may not. It becomes the text of a note.
	Reason string
}

// Error returns the reason.
func (r *RefusedError) Error() string { return r.Reason }

// ask returns the question about the updates that begin next; nil where there are none to ask for.
func (p *Pass) ask() []*Write {
	if !p.in.Ask || p.scaled || p.moved || p.doubted {
		return nil
	}
	q := &Write{Action: ActionAsk, Revision: p.in.Update.Name}
	for k := range p.result.Update {
		i := p.find(p.result.Update[k].Name)
		if p.isOver(i) || i.allowed || !p.disrupts(i) {
			continue
		}
		if !p.may(i) {
			break
		}
		for _, m := range i.members {
			q.Asked = append(q.Asked, m.pod)
		}
		q.asked = append(q.asked, i)
	}
	if len(q.Asked) == 0 {
		return nil
	}
	q.Write, q.Pod = write.Write{Verb: write.Ask, Object: q.Asked[0]}, q.Asked[0]
	return []*Write{q}
}

// may reports whether Input.MayUpdate allows the update of an instance. A refusal ends the updates that begin in the
// pass.
func (p *Pass) may(i *instance) bool {
	if p.in.MayUpdate == nil {
		return true
	}
	ok, why := p.in.MayUpdate(i.leader().pod)
	if !ok {
		p.refused(i, why)
	}
	return ok
}

// refused ends the updates that begin in the pass. Their order is kept: those after the instance wait with it.
func (p *Pass) refused(i *instance, why string) {
	p.note(note.Waiting, NoteRefused, i.Name, why)
	p.wake(retryRefused)
	p.replans = maxReplans
}

// asked takes the answer to a question.
func (p *Pass) asked(w *Write, err error) {
	admitted := len(w.Asked)
	var refusal *RefusedError
	switch {
	case errors.As(err, &refusal):
		admitted = refusal.Admitted
	case err != nil:
		p.fail(Failure{Write: w, Object: w.Object.GetName(), Err: fmt.Errorf("%s: %w", w, err)})
		p.replans = maxReplans
		return
	}
	for _, i := range w.asked {
		// The pods of a group change together: one that is refused refuses all.
		if admitted -= len(i.members); admitted < 0 {
			p.refused(i, refusal.Reason)
			return
		}
		i.allowed = true
	}
}
