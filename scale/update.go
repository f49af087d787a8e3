package scale

import "slices"

// updateCount moves instances from the side that has too many to the other.
func (p *planner) updateCount() {
	d := p.plan.Difference
	n := int(abs(d.Update))
	if n == 0 || p.standstill(n) {
		return
	}
	backward := d.Update < 0
	b := Budget{Max: d.UpdateUnavailable, Strict: true}
	var candidates []*member
	for _, m := range p.members {
		if !m.available {
			b.Unavailable++
			if m.Updated != backward {
				b.UnderWay++
			}
		}
		if m.Updated == backward && !m.preparingDelete && !m.NotNow {
			candidates = append(candidates, m)
		}
	}
	p.orderUpdates(candidates)
	candidates = p.scattered(candidates)
	p.repairFirst(candidates)
	// These are out of traffic already. What waits for the end of its grace period still runs what it ran before: taken
	// back in time, nothing restarts.
	bringForward(candidates, func(m *member) bool { return m.preparing || m.inGrace(p.in.Keys) })
	p.update(candidates[:min(n, len(candidates))], walk{Budget: b})
	p.plan.Backward = backward && len(p.plan.Update) > 0
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

// orderUpdates puts those first that are missed least.
func (p *planner) orderUpdates(candidates []*member) {
	all := make([]standing, len(candidates))
	for i, m := range candidates {
		all[i] = newStanding(m)
	}
	t := tableOf(all)
	t.sort()
	for i := range candidates {
		candidates[i] = t.at(i).member
	}
	p.prioritise(candidates)
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
	hooked := 0
	for i, m := range candidates {
		if !b.take(m) {
			p.noteWaiting(NoteUpdateLimited, len(candidates)-i, "to be updated "+spent(max(b.Unavailable, b.UnderWay), b.Max))
			break
		}
		p.plan.Update = append(p.plan.Update, *m.Instance)
		if m.preparing && m.hooked(p.in.Hooks.InPlaceUpdate) {
			hooked++
		}
	}
	p.noteWaiting(NoteHooked, hooked, "for their inPlaceUpdate hook to let them go")
}

// bringForward brings those first for which something is true, and keeps the order else.
func bringForward(all []*member, first func(*member) bool) {
	slices.SortStableFunc(all, func(a, b *member) int { return compareBool(first(b), first(a)) })
}
