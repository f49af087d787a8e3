package workload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// update moves a pod to the target: in place where the strategy and the change allow it, else by another pod.
func (p *Pass) update(i *instance, m *member) *Write {
	if w, waits := p.goAhead(i, m); waits {
		return w
	}
	target := p.targetOf(i)
	if target.matches(p.in.revisionOf(m.pod)) {
		return nil
	}
	if p.in.Strategy == Recreate || i.Recreate {
		return p.recreate(i, m, target)
	}
	if m.child != nil {
		return p.updateChild(i, m, target)
	}
	if i.NotInPlace != "" {
		return p.blocked(i, m, target, errors.New(i.NotInPlace))
	}
	change, err := p.changes.of(p.in.revisionOf(m.pod), target, p.role(m))
	if err != nil {
		return p.blocked(i, m, target, err)
	}
	return p.beginUpdate(i, m, change, target)
}

// beginUpdate returns the next write of an update in place, which a hook may hold.
func (p *Pass) beginUpdate(i *instance, m *member, change *inplace.Change, target *Revision) *Write {
	s := p.situation(i, m)
	s.AtTarget = false
	switch verdict, move := lifecycle.BeforeUpdate(s); verdict {
	case lifecycle.Wait:
		return p.move(i, m, move)
	case lifecycle.Stop:
		return p.refuse(i, m, p.errState(m.pod))
	}
	return p.change(i, m, change, target)
}

// blocked deals with a change that is not possible in place.
func (p *Pass) blocked(i *instance, m *member, target *Revision, why error) *Write {
	if p.in.Strategy == InPlaceOnly {
		p.refrain(i)
		p.fail(Failure{Object: m.pod.Name, NotInPlace: true, Err: why})
		return nil
	}
	p.note(note.Info, NoteNotInPlace, m.pod.Name, why.Error())
	return p.recreate(i, m, target)
}

// change returns the next write of an update in place that begins.
func (p *Pass) change(i *instance, m *member, change *inplace.Change, target *Revision) *Write {
	u := inplace.Update{
		Pod: m.pod, Change: change, Revision: target.label(), GraceSeconds: p.in.GraceSeconds,
		TakeOut: p.isGroup() && p.in.Group.Traffic == TrafficTogether,
		Labels:  map[string]string{}, Annotations: map[string]string{},
	}
	if !p.keepsState(change) {
		u.Labels[p.in.Policy.Keys.LifecycleStateKey()] = string(p.stateWhileUpdated(m.pod))
		u.Annotations[p.in.Policy.Keys.LifecycleTimestampKey()] = p.now.Format(time.RFC3339)
	}
	if p.in.RevisionLabels != nil {
		maps.Copy(u.Labels, p.in.RevisionLabels(target.Name))
	}
	action, err := inplace.Next(u, p.in.Policy, p.now)
	if err != nil {
		return p.refuse(i, m, err)
	}
	p.explain(action)
	switch action.Verdict {
	case inplace.Recreate:
		return p.recreate(i, m, target)
	case inplace.Write:
		w := &Write{Write: *action.Write, Action: ActionUpdate, Revision: target.Name}
		if w.Subresource == write.Status {
			w.Action = ActionUnready
		}
		if u.GraceSeconds > 0 && w.Subresource == write.Main {
			p.wake(time.Duration(u.GraceSeconds) * time.Second)
		}
		return w
	}
	return nil
}

// recreate has a pod replaced: slots by deleting it, else by a mark, under which the next plan deletes it.
func (p *Pass) recreate(i *instance, m *member, target *Revision) *Write {
	if p.in.Scale.Slots != nil {
		i.task = taskDelete
		return p.delete(i, m)
	}
	if p.in.isMarked(m.pod) || i.marked {
		return nil
	}
	i.marked = true
	return p.mark(m, target.Name)
}

// mark marks a pod to be deleted.
func (p *Pass) mark(m *member, target string) *Write {
	mark := map[string]*string{p.in.Policy.Keys.SpecifiedDeleteKey(): ptr.To("true")}
	ops := append(write.TestUID(m.object()), write.SetLabels(m.object(), mark)...)
	return &Write{Write: *write.JSON(m.object(), write.Main, ops...), Action: ActionMark, Revision: target}
}

// targetOf is the revision that the plan moves an instance to.
func (p *Pass) targetOf(i *instance) *Revision {
	if p.in.ownRevision(i.Name) == nil && p.result.Backward {
		return &p.in.Current
	}
	return p.in.goal(i.Name)
}

// ownRevision returns the revision that an instance, or a slot, has of its own; nil for none.
func (in *Input) ownRevision(name string) *Revision {
	if target := in.Targets[name]; target != "" {
		return in.revision(target)
	}
	return nil
}

// goal is the revision that an instance, or a slot, has in the end.
func (in *Input) goal(name string) *Revision {
	return cmp.Or(in.ownRevision(name), &in.Update)
}

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
