package workload

import (
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// The pods of a group serve together, so they change together: all leave traffic, the leader changes first, the others
// follow when the leader runs what it should, and all come back when the last one does. Where the group stands follows
// from its pods alone: a process that dies in between leaves a group that the next pass continues.

// updateGroup returns what to write next so that a group gets to a revision.
func (p *Pass) updateGroup(i *instance, target *Revision) []*Write {
	if p.in.Strategy == Recreate || i.Recreate {
		return p.add(nil, i, i.leader(), p.recreate(i, i.leader(), target))
	}
	due := make([]*member, 0, len(i.members))
	for _, m := range i.members {
		label := p.in.revisionOf(m.pod)
		if target.matches(label) {
			continue
		}
		if _, err := p.changes.of(label, target, p.role(m)); err != nil {
			return p.add(nil, i, i.leader(), p.blocked(i, i.leader(), target, err))
		}
		due = append(due, m)
	}
	if writes, wait := p.prepareGroup(i, due); wait {
		return writes
	}
	return p.changeGroup(i, due, target)
}

// prepareGroup asks the hooks of all pods that are due. No pod changes while a hook holds one.
func (p *Pass) prepareGroup(i *instance, due []*member) (writes []*Write, wait bool) {
	for _, m := range due {
		s := p.situation(i, m)
		s.AtTarget = false
		switch verdict, move := lifecycle.BeforeUpdate(s); verdict {
		case lifecycle.Wait:
			wait = true
			if !p.isBusy(m) {
				writes = p.add(writes, i, m, p.move(i, m, move))
			}
		case lifecycle.Stop:
			return p.add(nil, i, m, p.refuse(i, m, p.errState(m.pod))), true
		}
	}
	return writes, wait
}

// changeGroup changes the pods in their order.
func (p *Pass) changeGroup(i *instance, due []*member, target *Revision) []*Write {
	var unready, change []*Write
	for _, m := range due {
		if p.isBusy(m) {
			return unready // its answer comes first
		}
		of, _ := p.changes.of(p.in.revisionOf(m.pod), target, p.role(m))
		switch w := p.change(i, m, of, target); {
		case w == nil:
		case w.Action == ActionUnready:
			unready = p.add(unready, i, m, w)
		default:
			change = append(change, w)
			w.member = m
		}
		if p.isOver(i) {
			return nil
		}
	}
	if len(unready) > 0 {
		return unready
	}
	leader := i.leader()
	for _, w := range change {
		if w.member == leader {
			return p.add(nil, i, leader, w)
		}
	}
	if done, n := inplace.Completed(leader.pod, p.in.Policy); !done {
		p.notes = append(p.notes, n)
		if p.isBusy(leader) {
			return nil
		}
		return p.add(nil, i, leader, p.proceed(i, leader))
	}
	var writes []*Write
	for _, w := range change {
		writes = p.add(writes, i, w.member, w)
	}
	return writes
}

// continueGroup continues a group whose update has begun with its leader, and lets the pods back into traffic together.
func (p *Pass) continueGroup(i *instance) []*Write {
	if p.anyIn(i, kruise.LifecycleStatePreparingDelete) {
		return p.hold(i)
	}
	goal := p.in.revision(p.in.revisionOf(i.leader().pod))
	if goal == nil {
		p.refuse(i, i.leader(), errUnknownRevision)
		return nil
	}
	complete := true
	for _, m := range i.members {
		if !goal.matches(p.in.revisionOf(m.pod)) {
			if p.in.Strategy == Recreate {
				return p.add(nil, i, i.leader(), p.recreate(i, i.leader(), goal))
			}
			if i.chosen && !p.scaled && goal != p.target() {
				return nil // the plan updates the group to another revision, which needs no detour
			}
			return p.updateGroup(i, goal)
		}
		done, _ := inplace.Completed(m.pod, p.in.Policy)
		complete = complete && done
	}
	var writes []*Write
	for _, m := range i.members {
		if done, _ := inplace.Completed(m.pod, p.in.Policy); p.isBusy(m) || done && !complete {
			continue // a pod that is done waits for the others
		}
		writes = p.add(writes, i, m, p.proceed(i, m))
	}
	return writes
}

// hold asks the preDelete hook of all pods of a group of which one is held already: they are deleted together.
func (p *Pass) hold(i *instance) []*Write {
	var writes []*Write
	for _, m := range i.members {
		if verdict, move := lifecycle.BeforeDelete(p.situation(i, m)); verdict == lifecycle.Wait && !p.isBusy(m) {
			writes = p.add(writes, i, m, p.move(i, m, move))
		}
	}
	return writes
}
