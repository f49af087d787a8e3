package workload

import (
	"slices"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// With TrafficTogether the pods of a group serve together, so they change together: all leave traffic, the leader
// changes first, the others follow when the leader runs what it should, and all come back when the last one does. With
// TrafficEach each pod leaves and comes back by itself, in the order of the roles and within their bounds. Where the
// group stands follows from its pods alone: a process that dies in between leaves a group that the next pass continues.

// updateGroup returns what to write next so that a group gets to a revision. planned means that the plan has chosen it
// for that.
func (p *Pass) updateGroup(i *instance, target *Revision, planned bool) []*Write {
	if p.in.Strategy == Recreate || i.Recreate {
		return p.recreateGroup(i, target, planned)
	}
	due := make([]due, 0, len(i.members))
	for _, m := range i.members {
		if d := p.dueIn(m, target); d.member != nil {
			if d.blocked != nil && p.recreatesGroup(i, m) {
				return p.blockedGroup(i, target, d.blocked, planned)
			}
			due = append(due, d)
		}
	}
	if p.in.Group.Traffic == TrafficEach {
		return p.updateEach(i, due, target, planned)
	}
	if writes, wait := p.prepareGroup(i, due); wait {
		return writes
	}
	return p.changeGroup(i, due, target)
}

// due is a member that is to be updated.
type due struct {
	*member

	change *inplace.Change
	// blocked is why the update is not possible in place.
	blocked error
}

// dueIn returns the update of a member, and nothing for a member that has the revision.
func (p *Pass) dueIn(m *member, target *Revision) due {
	label := p.in.revisionOf(m.pod)
	if m.deleted || target.matches(label) {
		return due{}
	}
	d := due{member: m}
	d.change, d.blocked = p.changes.of(label, target, p.role(m))
	return d
}

// recreatesGroup reports whether a change of a pod that is not possible in place recreates its group.
func (p *Pass) recreatesGroup(i *instance, m *member) bool {
	return p.in.Group.Blocked == BlockedGroup || p.in.Strategy == InPlaceOnly ||
		m == i.leader() && p.in.Group.Restart.Policy != RestartPod
}

// blockedGroup deals with a change of a group that is not possible in place.
func (p *Pass) blockedGroup(i *instance, target *Revision, why error, planned bool) []*Write {
	if p.in.Strategy == InPlaceOnly {
		p.blocked(i, i.leader(), target, why)
		return nil
	}
	p.note(note.Info, NoteNotInPlace, i.leader().pod.Name, why.Error())
	return p.recreateGroup(i, target, planned)
}

// recreateGroup has a group replaced.
func (p *Pass) recreateGroup(i *instance, target *Revision, planned bool) []*Write {
	if each := p.in.Group.Traffic == TrafficEach; each && (!planned || p.isMixed(i)) && !p.mayGo(i) {
		return nil
	}
	if p.in.Group.Restart.Policy == RestartPod && p.in.Scale.Slots != nil {
		i.task = taskDelete
		return p.deleteInOrder(i)
	}
	return p.add(nil, i, i.leader(), p.recreate(i, i.leader(), target))
}

// deleteInOrder deletes the leader of a group after the others. Its mark is for the next pass: where a group may lack
// its leader, nothing else shows that the group is to go.
func (p *Pass) deleteInOrder(i *instance) []*Write {
	if len(i.members) == 0 {
		return nil
	}
	if leader := i.leader(); !i.gone && len(i.members) > 1 && !p.in.isMarked(leader.pod) {
		if p.isBusy(leader) {
			return nil
		}
		return p.add(nil, i, leader, p.mark(leader, p.in.revisionOf(leader.pod)))
	}
	var writes []*Write
	for _, m := range i.members {
		if !m.deleted && !p.isBusy(m) && !p.leads(i, m) {
			writes = p.add(writes, i, m, p.delete(i, m))
		}
	}
	return writes
}

// leads reports whether a pod is the leader of others that exist.
func (p *Pass) leads(i *instance, m *member) bool {
	for rank, other := range p.in.Members {
		if rank != int(m.rank) && i.has(rank, other.Name) {
			return m == i.leader()
		}
	}
	return false
}

// updateEach updates pods of a group in their order, each by itself.
func (p *Pass) updateEach(i *instance, all []due, target *Revision, planned bool) []*Write {
	p.sortEach(all)
	var writes []*Write
	for _, d := range all {
		m := d.member
		if p.isBusy(m) || !p.isNext(i, d, all, target) {
			continue
		}
		var w *Write
		switch up := p.isUp(m); {
		case up && p.in.Scale.Updates == scale.UpdatesPaused:
			continue
		case d.blocked != nil:
			if up && !p.mayDisrupt(i, m, planned) {
				continue
			}
			p.note(note.Info, NoteNotInPlace, m.pod.Name, d.blocked.Error())
			w = p.delete(i, m)
		default:
			w = p.beginUpdate(i, m, d.change, target)
			disruptive := p.isDisruptive(w, d)
			if up && disruptive && !p.mayDisrupt(i, m, planned) {
				continue
			}
			if w != nil {
				w.harmless = !disruptive
			}
		}
		if p.isOver(i) {
			return nil
		}
		writes = p.add(writes, i, m, w)
	}
	return writes
}

// sortEach brings those forward that are not available: a broken revision is replaced where it is broken.
func (p *Pass) sortEach(all []due) {
	up := func(d due) int {
		if p.isUp(d.member) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b due) int { return up(a) - up(b) })
}

// isNext reports whether all that comes before the update of a pod is done.
func (p *Pass) isNext(i *instance, d due, all []due, target *Revision) bool {
	done := func(rank int) bool {
		before := i.at(rank)
		return p.isUp(before) && p.isDone(before, target)
	}
	for _, rank := range p.order.before[d.rank] {
		if !done(rank) {
			return false
		}
	}
	role := p.order.roles[d.rank]
	if role.Last == nil || !role.Last(d.pod) {
		return true
	}
	for rank, m := range p.in.Members {
		others := m.Role == p.role(d.member) && rank != int(d.rank)
		isLast := func(other due) bool { return int(other.rank) == rank && role.Last(other.pod) }
		if others && !done(rank) && !slices.ContainsFunc(all, isLast) {
			return false
		}
	}
	return true
}

// isDone reports whether a pod runs a revision.
func (p *Pass) isDone(m *member, target *Revision) bool {
	done, _ := inplace.Completed(m.pod, p.in.Policy)
	return done && target.matches(p.in.revisionOf(m.pod))
}

// isDisruptive reports whether a write makes an available pod unavailable.
func (p *Pass) isDisruptive(w *Write, d due) bool {
	if w == nil || w.Action != ActionUpdate {
		return w != nil
	}
	gated := lifecycle.HasGate(d.pod, p.in.Policy.Keys.InPlaceReadyOf(d.pod))
	return !p.keepsState(d.change) || !gated && changesContainers(d.change)
}

// keepsState reports whether a pod keeps its lifecycle state while it changes. With TrafficEach a pod stays Normal
// whose containers do not change, unless a hook waits for the state.
func (p *Pass) keepsState(change *inplace.Change) bool {
	hooks := p.in.Scale.Hooks
	return p.in.KeepState || p.in.Group.Traffic == TrafficEach && p.in.Policy.Unready != inplace.UnreadyAlways &&
		!changesContainers(change) && (hooks == nil || hooks.InPlaceUpdate == nil)
}

func changesContainers(c *inplace.Change) bool { return len(c.Images)+len(c.Env)+len(c.Resources) > 0 }

// prepareGroup asks the hooks of all pods that are due. No pod changes while a hook holds one.
func (p *Pass) prepareGroup(i *instance, all []due) (writes []*Write, wait bool) {
	for _, d := range all {
		if d.blocked != nil {
			continue // its hook is that of deletions
		}
		s := p.situation(i, d.member)
		s.AtTarget = false
		switch verdict, move := lifecycle.BeforeUpdate(s); verdict {
		case lifecycle.Wait:
			wait = true
			if !p.isBusy(d.member) {
				writes = p.add(writes, i, d.member, p.move(i, d.member, move))
			}
		case lifecycle.Stop:
			return p.add(nil, i, d.member, p.refuse(i, d.member, p.errState(d.pod))), true
		}
	}
	return writes, wait
}

// changeGroup changes the pods in their order.
func (p *Pass) changeGroup(i *instance, all []due, target *Revision) []*Write {
	var unready, change []*Write
	for _, d := range all {
		if p.isBusy(d.member) {
			return unready // its answer comes first
		}
		var w *Write
		if d.blocked == nil {
			w = p.change(i, d.member, d.change, target)
		} else {
			p.note(note.Info, NoteNotInPlace, d.pod.Name, d.blocked.Error())
			w = p.delete(i, d.member)
		}
		switch {
		case w == nil:
		case w.Action == ActionUnready:
			unready = p.add(unready, i, d.member, w)
		default:
			change = append(change, w)
			w.member = d.member
		}
		if p.isOver(i) {
			return nil
		}
	}
	if len(unready) > 0 {
		return unready
	}
	return p.changeInOrder(i, change, target)
}

// changeInOrder returns the writes of pods whose predecessors have been updated, and continues the updates that others
// may wait for.
func (p *Pass) changeInOrder(i *instance, change []*Write, target *Revision) []*Write {
	var writes []*Write
	isLate := func(rank int) bool {
		before := i.at(rank)
		return before == nil || !p.isDone(before, target)
	}
	for _, w := range change {
		if !slices.ContainsFunc(p.order.before[w.member.rank], isLate) {
			writes = p.add(writes, i, w.member, w)
		}
	}
	for _, m := range i.members {
		done, n := inplace.Completed(m.pod, p.in.Policy)
		if done || m.deleted || !target.matches(p.in.revisionOf(m.pod)) {
			continue
		}
		p.notes = append(p.notes, n)
		if !p.isBusy(m) {
			writes = p.add(writes, i, m, p.proceed(i, m))
		}
	}
	return writes
}

// continueGroup continues a group whose update has begun, and lets its pods back into traffic.
func (p *Pass) continueGroup(i *instance) []*Write {
	if p.anyIn(i, kruise.LifecycleStatePreparingDelete) {
		return p.hold(i)
	}
	goal := p.in.revision(p.goalOf(i))
	if goal == nil {
		p.refuse(i, i.leader(), errUnknownRevision)
		return nil
	}
	var writes []*Write
	isLate := func(m *member) bool { return !m.deleted && !goal.matches(p.in.revisionOf(m.pod)) }
	if slices.ContainsFunc(i.members, isLate) {
		if p.in.Strategy == Recreate {
			return p.recreateGroup(i, goal, false)
		}
		if !i.chosen || p.scaled || goal == p.target() { // else the plan updates the group, which needs no detour
			writes = p.updateGroup(i, goal, false)
		}
		if p.in.Group.Traffic == TrafficTogether || p.isOver(i) || i.task == taskDelete {
			return writes
		}
	}
	return p.proceedAll(i, goal, writes)
}

// proceedAll continues the updates of pods that have the revision of their group. With TrafficTogether a pod that is
// done waits for the others.
func (p *Pass) proceedAll(i *instance, goal *Revision, writes []*Write) []*Write {
	isUnderWay := func(m *member) bool {
		done, _ := inplace.Completed(m.pod, p.in.Policy)
		return !done
	}
	each, complete := p.in.Group.Traffic == TrafficEach, !slices.ContainsFunc(i.members, isUnderWay)
	for _, m := range i.members {
		switch {
		case p.isBusy(m) || m.deleted:
		case each && goal.matches(p.in.revisionOf(m.pod)), !each && (complete || isUnderWay(m)):
			writes = p.add(writes, i, m, p.proceed(i, m))
		}
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
