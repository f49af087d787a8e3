package scale

import "slices"

// updateCount moves instances from the side that has too many to the other.
func (p *planner) updateCount() {
	d := p.plan.Difference
	n, backward := int(abs(d.Update)), d.Update < 0
	waiting := n
	b := Budget{Max: p.in.Limits.spare(int32(len(p.members))), Strict: true}
	var candidates, pinned []*member
	for _, m := range p.members {
		waiting += int(m.duePinned())
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
	if waiting == 0 || p.standstill(waiting) {
		return
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
	sortStandings(all)
	for i := range candidates {
		candidates[i] = all[i].member
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

// Budget is a walk over candidates of a disruption, in the order in which they are to go, that lets no more instances
// be unavailable than may be. Each Take spends of it:
//
//	b := scale.Budget{Max: 2, Unavailable: unavailable}
//	for _, pod := range candidates {
//		if !b.Take(isAvailable(pod)) {
//			break // or continue, where one that is unavailable may go before its turn
//		}
//		disrupt(pod)
//	}
type Budget struct {
	// Max is how many instances may be unavailable at once. With zero or less nothing goes that is available.
	Max int32
	// Unavailable is how many are, the candidates among them included.
	Unavailable int32
	// Strict limits how many are under way, too: then an unavailable one needs a place as well. Without it a
	// workload that is all broken is replaced at once.
	Strict bool
	// UnderWay is how many are on their way already: disrupted before, and not available yet. Only Strict looks at it.
	UnderWay int32
}

// Take reports whether one more candidate may go, and counts it if it may. One that is unavailable already makes
// nothing worse, so it costs nothing.
func (b *Budget) Take(available bool) bool {
	if b.Strict && b.UnderWay >= b.Max {
		return false
	}
	if available {
		if b.Unavailable >= b.Max {
			return false
		}
		b.Unavailable++
	}
	b.UnderWay = saturatingAdd(b.UnderWay, 1)
	return true
}
