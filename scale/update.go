package scale

import "slices"

// updateCount moves instances from the side that has too many to the other.
func (p *planner) updateCount() {
	d := p.plan.Difference
	n, pinnedDue := int(abs(d.Update)), p.duePinned()
	if waiting := n + pinnedDue; waiting == 0 || p.standstill(waiting) {
		return
	}
	backward := d.Update < 0
	b := Budget{Max: p.in.Limits.spare(int32(len(p.members))), Strict: true}
	var candidates, pinned []*member
	for _, m := range p.members {
		if !m.available {
			b.Unavailable++
			if m.Updated != (backward && !m.pinned) {
				b.UnderWay++
			}
		}
		switch {
		case m.NotNow || m.preparingDelete:
		case m.duePinned() > 0:
			pinned = append(pinned, m)
		case !m.pinned && m.Updated == backward:
			candidates = append(candidates, m)
		}
	}
	orderUpdates(candidates)
	p.prioritise(candidates)
	candidates = p.scattered(candidates)
	p.continuedFirst(candidates)
	orderUpdates(pinned)
	candidates = append(pinned, candidates[:min(n, len(candidates))]...)
	p.continuedFirst(candidates)
	p.update(candidates, walk{Budget: b})
	p.plan.Backward = backward && len(p.plan.Update) > 0
}

// continuedFirst brings forward what is out of traffic already. What waits for the end of its grace period still runs
// what it ran before: taken back in time, nothing restarts.
func (p *planner) continuedFirst(candidates []*member) {
	p.repairFirst(candidates)
	bringForward(candidates, func(m *member) bool { return m.preparing || m.inGrace(p.in.Keys) })
}

// duePinned is how many pinned instances are to move to the revision of their own.
func (p *planner) duePinned() int {
	n := int32(0)
	for _, m := range p.members {
		n += m.duePinned()
	}
	return int(n)
}

// duePinned is 1 for a pinned instance that is to move to the revision of its own. One that is chosen to be deleted is
// replaced by one that is not pinned.
func (m *member) duePinned() int32 {
	if m.pinned && !m.Updated && !m.preparingDelete && !m.MarkedForDeletion {
		return 1
	}
	return 0
}

// standstill reports whether updates do not run, and notes how many wait for that.
func (p *planner) standstill(waiting int) bool {
	switch p.in.Updates {
	case UpdatesPaused:
		p.noteWaiting(NotePaused, waiting, "to be updated: updates are paused")
		return true
	case UpdatesOnDelete:
		p.noteWaiting(NoteOnDelete, waiting, "to be deleted by the user, to come back updated")
		return true
	}
	return false
}

// isStopped reports whether updates do not run.
func (p *planner) isStopped() bool {
	return p.in.Updates == UpdatesPaused || p.in.Updates == UpdatesOnDelete
}

// orderUpdates puts those first that are missed least.
func orderUpdates(candidates []*member) {
	all := make([]standing, len(candidates))
	for i, m := range candidates {
		all[i] = newStanding(m)
	}
	sorted := pointersTo(all)
	sortStandings(sorted)
	for i := range candidates {
		candidates[i] = sorted[i].member
	}
}

func (p *planner) prioritise(candidates []*member) {
	if err := Prioritise(candidates, (*member).labels, p.in.Priority); err != nil {
		p.note(NotePriorityIgnored, "", err.Error())
	}
}

func (p *planner) scattered(candidates []*member) []*member {
	return Scatter(candidates, p.members, (*member).labels, p.in.Scatter)
}

// repairFirst brings forward what is not available, where that is wished.
func (p *planner) repairFirst(candidates []*member) {
	if p.in.UnavailableFirst {
		bringForward(candidates, func(m *member) bool { return !m.available || m.Impaired })
	}
}

// walk is a Budget of instances that something beside their pods can keep from serving.
type walk struct {
	Budget

	// gone is how many instances are not available, beside those that are Impaired alone.
	gone int32
}

// take reports whether an instance may go. One that is Impaired alone spends of the budget already, but its pods still
// serve, so that it waits for those that do not.
func (w *walk) take(m *member) bool {
	switch {
	case m.Impaired && m.available:
		if w.gone >= w.Max {
			return false
		}
	case !w.Take(m.available):
		return false
	}
	if m.available {
		w.gone++
	}
	return true
}

// update walks along the candidates as far as the budget goes.
func (p *planner) update(candidates []*member, b walk) {
	hooked, waiting := 0, 0
	for i, m := range candidates {
		if !b.take(m) {
			if m.pinned { // it goes before others, which may be unavailable already, so that it does not stop them
				waiting++
				continue
			}
			waiting += len(candidates) - i
			break
		}
		p.plan.Update = append(p.plan.Update, *m.Instance)
		if m.preparing && m.hooked(p.in.Hooks.InPlaceUpdate) {
			hooked++
		}
	}
	if waiting > 0 {
		p.noteWaiting(NoteUpdateLimited, waiting, "to be updated "+spent(max(b.Unavailable, b.UnderWay), b.Max))
	}
	p.noteWaiting(NoteHooked, hooked, "for their inPlaceUpdate hook to let them go")
}

// bringForward brings those first for which something is true, and keeps the order else.
func bringForward(all []*member, first func(*member) bool) {
	slices.SortStableFunc(all, func(a, b *member) int { return compareBool(first(b), first(a)) })
}
