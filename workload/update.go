package workload

import (
	"cmp"
	"errors"
	"maps"
	"time"

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
	mark := p.in.Policy.Keys.SpecifiedDeleteKey()
	add := write.Add(write.Pointer("metadata", "labels", mark), "true")
	if len(m.pod.Labels) == 0 {
		add = write.Add("/metadata/labels", map[string]string{mark: "true"})
	}
	w := write.JSON(m.object(), write.Main, write.Test("/metadata/uid", m.pod.UID), add)
	return &Write{Write: *w, Action: ActionMark, Revision: target}
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
