package scale

import (
	"cmp"
	"fmt"
	"slices"
)

// maxCreations is how many instances one plan creates at most. The next plan goes on; a typing error in a number of
// replicas must not take the memory of the planner.
const maxCreations = 1 << 16

// planCount plans for instances of which one is as good as another.
func (p *planner) planCount() {
	l := p.in.Limits
	if p.in.Updates == UpdatesPaused {
		l.MaxSurge = 0
	}
	// What a hook holds before its update may count as updated only when the instances are counted.
	d := p.differ(p.isUpdated, l)
	if p.in.PreparingUpdateIsUpdated {
		u := p.differ(func(m *member) bool { return m.Updated }, l)
		d.Update, d.UpdateUnavailable = u.Update, u.UpdateUnavailable
	}
	p.plan.Difference = d
	if !p.in.UpdateOnly {
		p.restore()
		if p.idle() {
			p.scale()
		}
	}
	if p.idle() {
		p.updateCount()
		p.noteKept(p.members)
	}
}

// isUpdated reports on which side an instance is when the instances are counted.
func (p *planner) isUpdated(m *member) bool {
	return m.Updated || p.in.PreparingUpdateIsUpdated && m.preparing
}

func (p *planner) differ(isUpdated func(*member) bool, l Limits) Difference {
	old, updated := Count{}, Count{}
	for _, m := range p.members {
		c := &old
		if isUpdated(m) {
			c = &updated
		}
		switch {
		case m.preparingDelete:
			c.PreparingDelete++
		case m.MarkedForDeletion:
			c.MarkedForDeletion++
		case m.available:
			c.Available++
		default:
			c.Unavailable++
		}
	}
	d := Differ(old, updated, l)
	// Where both sides lack instances, or both have too many, it is not for updates to even that out: they would only
	// take from one side what it needs itself.
	if old, updated := excess(old, updated, l); old > 0 && updated > 0 || old < 0 && updated < 0 {
		d.Update, d.UpdateUnavailable = 0, 0
	}
	return d
}

// restore takes back deletions that have not happened yet, where instances are missing now. One that its hook
// made not ready is as good as gone.
func (p *planner) restore() {
	if p.marksNotReady() {
		return
	}
	var held []standing
	staying := 0
	for _, m := range p.members {
		switch {
		case m.preparingDelete && !m.MarkedForDeletion:
			held = append(held, newStanding(m))
		case !m.preparingDelete && !m.MarkedForDeletion:
			staying++
		}
	}
	missing := max(int(p.in.Limits.Replicas)-staying, 0)
	sortStandings(held)
	for _, s := range slices.Backward(held[max(len(held)-missing, 0):]) {
		p.takeBack(s.member)
	}
}

func (p *planner) takeBack(m *member) {
	p.plan.Restore = append(p.plan.Restore, *m.Instance)
	p.note(NoteRestored, m.Name, "it is wanted again")
}

// scale creates or deletes, never both: what a deletion frees is filled only when it is gone.
func (p *planner) scale() {
	d := p.plan.Difference
	if d.CreateMissing > 0 {
		p.create(d)
		if p.idle() {
			// What is being deleted counts as unavailable, and can be all that creation waits for.
			p.finishDeletions(p.members)
		}
		return
	}
	p.finishDeletions(p.members)
	p.deleteDoomed(d)
	p.scaleIn(d)
}

func (p *planner) create(d Difference) {
	n := min(d.Create, maxCreations)
	for i := range n {
		p.plan.Create = append(p.plan.Create, Creation{Updated: i >= d.CreateOld})
	}
	if d.CreateMissing == n {
		return
	}
	why := fmt.Sprintf("to be created (%d at a time)", maxCreations)
	if n == d.Create {
		unavailable := int32(0)
		for _, m := range p.members {
			if m.preparingDelete || !m.MarkedForDeletion && !m.available {
				unavailable++
			}
		}
		why = "to be created " + spent(unavailable, p.in.Limits.scaling())
	}
	p.noteWaiting(NoteScaleUpLimited, int(d.CreateMissing-n), why)
}

func (p *planner) delete(m *member, code, why string) {
	p.plan.Delete = append(p.plan.Delete, *m.Instance)
	p.note(code, m.Name, why)
}

// finishDeletions deletes instances that a hook has released. It is out of use already, so that no budget counts.
func (p *planner) finishDeletions(members []*member) {
	var released []*member
	hooked := 0
	for _, m := range members {
		switch {
		case m == nil || !m.preparingDelete || m.Terminating:
		case m.hooked(p.in.Hooks.PreDelete):
			hooked++
		default:
			released = append(released, m)
		}
	}
	slices.SortFunc(released, func(a, b *member) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range released {
		p.delete(m, NoteReleased, "no preDelete hook holds it any more")
	}
	p.noteWaiting(NoteHooked, hooked, "for their preDelete hook to let them go")
}

// deleteDoomed deletes what the user chose, the ones that are missed least first. The ones that are not ready cost
// nothing, but they use up the budget of the others.
func (p *planner) deleteDoomed(d Difference) {
	var markedForDeletion []*member
	b := Budget{Max: d.DeleteAvailable}
	for _, m := range p.members {
		if m.MarkedForDeletion && !m.preparingDelete {
			markedForDeletion = append(markedForDeletion, m)
			if !m.ready {
				b.Unavailable++
			}
		}
	}
	slices.SortFunc(markedForDeletion, func(a, b *member) int {
		return cmp.Or(cmp.Compare(number(a.ready), number(b.ready)), cmp.Compare(number(a.available), number(b.available)),
			cmp.Compare(a.Name, b.Name))
	})
	for i, m := range markedForDeletion {
		if !b.Take(m.ready) {
			p.noteWaiting(NoteDeleteLimited, len(markedForDeletion)-i, "to be deleted, as was asked, until more are available")
			break
		}
		p.delete(m, NoteChosen, "it was chosen")
	}
}

// scaleIn deletes surplus instances, old ones before updated ones by the partition.
func (p *planner) scaleIn(d Difference) {
	if d.Delete == 0 {
		return
	}
	if slices.ContainsFunc(p.members, func(m *member) bool { return m.preparingDelete || m.MarkedForDeletion }) {
		p.noteWaiting(NoteWaitingForDeletion, int(d.Delete), "to be deleted until those chosen or held before are gone")
		return
	}
	var old, updated []*member
	for _, m := range p.members {
		if p.isUpdated(m) {
			updated = append(updated, m)
		} else {
			old = append(old, m)
		}
	}
	fromOld := min(d.DeleteOld, d.Delete)
	b := Budget{Max: d.DeleteAvailable}
	old = p.deleteVictims(old, updated, fromOld, &b)
	p.deleteVictims(updated, old, d.Delete-fromOld, &b)
	p.noteWaiting(NoteDeleteLimited, int(d.Delete)-len(p.plan.Delete), "to be deleted until more are available")
}

// deleteVictims deletes n of the candidates, as far as the budget goes, and gives those that are none of the n.
func (p *planner) deleteVictims(candidates, others []*member, n int32, b *Budget) []*member {
	if n <= 0 {
		return candidates
	}
	ranked := p.victims(candidates, others)
	n = min(n, int32(len(ranked)))
	for i, s := range ranked {
		switch {
		case i >= int(n):
			candidates[i-int(n)] = s.member
		case b.Take(s.ready):
			why := "too many, and none of its revision is to stay"
			if int(n) < len(ranked) {
				why = victimText(s.decides(&ranked[n]))
			}
			p.delete(s.member, NoteScaleIn, why)
		}
	}
	return candidates[:len(ranked)-int(n)]
}

// marksNotReady reports whether a hook takes instances out of use, so that there is no simple way back.
func (p *planner) marksNotReady() bool {
	h := p.in.Hooks
	return h.PreDelete != nil && h.PreDelete.MarkPodNotReady || h.InPlaceUpdate != nil && h.InPlaceUpdate.MarkPodNotReady
}

// number is 1 for true: keys that are compared are numbers.
func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
