package scale

import (
	"cmp"
	"fmt"
	"slices"
)

// slotted is a plan for instances that have names of their own.
type slotted struct {
	*planner
	// wanted are the instances by position in Slots; nil where one is missing.
	wanted []*member
	// surplus have a name that is no slot; the last ones first.
	surplus []*member
	// unavailable is how many slots have no available instance, and blocked the position of the first of them; where
	// there is none, it is behind the last slot.
	unavailable int32
	blocked     int
	// impaired is how many are available and Impaired.
	impaired int32
	// surge are the instances at the names in surgeNames; nil where one is missing. spare is how many of them serve.
	surge      []*member
	surgeNames []string
	spare      int32
}

// assign puts members into their slots.
func (p *planner) assign(names map[string]*member) (*slotted, error) {
	slots := p.in.Slots
	s := &slotted{planner: p, wanted: make([]*member, len(slots)), blocked: len(slots)}
	position := make(map[string]int, len(slots))
	for i, name := range slots {
		if _, twice := position[name]; twice || name == "" {
			return nil, &InputError{"Slots", fmt.Sprintf("must not have %q twice, nor an empty name", name)}
		}
		position[name] = i
		s.wanted[i] = names[name]
		if m := s.wanted[i]; m == nil || !m.available {
			s.unavailable++
			s.blocked = min(s.blocked, i)
		} else if m.Impaired {
			s.impaired++
		}
	}
	if err := s.assignSurge(names, position); err != nil {
		return nil, err
	}
	for _, m := range p.members {
		if _, ok := position[m.Name]; !ok {
			s.surplus = append(s.surplus, m)
		}
	}
	slices.SortFunc(s.surplus, func(a, b *member) int {
		return cmp.Or(cmp.Compare(trailingNumber(b.Name), trailingNumber(a.Name)), cmp.Compare(b.Name, a.Name))
	})
	return s, nil
}

// planSlots plans for instances that have names of their own.
func (s *slotted) planSlots() {
	if !s.in.UpdateOnly {
		s.restoreSlots()
		if s.idle() && !s.in.NoCreate {
			s.createSlots()
		}
		if s.idle() {
			s.deleteSlots()
		}
	}
	if !s.idle() {
		return
	}
	s.updateSlots()
	kept := s.wanted
	if !s.unordered() {
		kept = kept[:s.in.Limits.Partition]
	}
	s.noteKept(kept)
}

// restoreSlots takes back deletions of instances whose slot is wanted again. Those of a revision that is to go are
// being deleted for that.
func (s *slotted) restoreSlots() {
	if s.marksNotReady() {
		return
	}
	for i, m := range s.wanted {
		if m != nil && m.preparingDelete && !m.Terminating && !m.MarkedForDeletion && !s.due(i) {
			s.takeBack(m)
		}
	}
}

// due reports whether the instance at a position may have to be updated by deletion.
func (s *slotted) due(i int) bool {
	m := s.wanted[i]
	switch {
	case m.Updated || m.NotNow || s.in.Updates == UpdatesOnDelete:
		return false
	case s.unordered():
		return int(s.in.Limits.Partition) < len(s.wanted)
	}
	return i >= int(s.in.Limits.Partition)
}

func (s *slotted) unordered() bool { return s.in.Priority != nil }

// createSlots fills slots from the first to the last. An instance that is not available spends the budget of the slots
// after it: those before it, as an update that fails at the last slot, must be filled all the same.
func (s *slotted) createSlots() {
	if s.in.InOrder {
		if s.blocked < len(s.wanted) && s.wanted[s.blocked] == nil {
			s.createAt(s.blocked, s.old())
		}
		return
	}
	missing, unavailable, old := 0, int32(0), s.old()
	limit := s.in.Limits.scaling()
	for i, m := range s.wanted {
		switch {
		case m == nil:
			missing++
			if saturatingAdd(unavailable, int32(len(s.plan.Create))) < limit {
				old = s.createAt(i, old)
			}
		case !m.available:
			unavailable++
		}
	}
	surge, unavailableSurge := s.createSurge(unavailable, limit)
	missing, unavailable = missing+surge, unavailable+unavailableSurge
	s.noteWaiting(NoteScaleUpLimited, missing-len(s.plan.Create), "to be created "+spent(unavailable, limit))
}

// old is how many slots have an instance that counts as not updated.
func (s *slotted) old() int {
	n := 0
	for _, m := range s.wanted {
		if m != nil && !s.isUpdated(m) {
			n++
		}
	}
	return n
}

// createAt plans the instance at a position, and gives how many old ones there are then.
func (s *slotted) createAt(i, old int) int {
	keepsOld := i < int(s.in.Limits.Partition)
	if s.unordered() {
		keepsOld = old < int(s.in.Limits.Partition)
	}
	if s.in.Updates == UpdatesOnDelete {
		keepsOld = false
	}
	s.plan.Create = append(s.plan.Create, Creation{Slot: s.in.Slots[i], Updated: !keepsOld})
	if keepsOld {
		old++
	}
	return old
}

func (s *slotted) deleteSlots() {
	if !s.in.InOrder {
		s.finishDeletions(s.members)
		for _, m := range s.surplus {
			if !m.preparingDelete && !m.Terminating {
				s.delete(m, NoteNoSlot, "its slot is not wanted")
			}
		}
		b := s.budget()
		s.deleteSurge(&b)
		s.deleteDoomedSlots(b)
		return
	}
	s.finishDeletions(s.wanted)
	switch {
	case s.blocked < len(s.wanted):
		if m := s.wanted[s.blocked]; m != nil && m.isFinished() {
			s.delete(m, NoteFinished, textFinished)
			return
		}
		s.noteBlocked()
	case s.removesSurplus():
		s.deleteLast()
	default:
		s.finishDeletions(s.surplus[:min(len(s.surplus), 1)]) // notes what the last one waits for
		s.deleteDoomedSlots(s.budget())
	}
}

// removesSurplus reports whether all else waits for surplus instances to go. A preDelete hook that holds the last one
// may take hours: only the surplus instances before it wait for that.
func (s *slotted) removesSurplus() bool {
	if len(s.surplus) == 0 {
		return false
	}
	last := s.surplus[0]
	return last.Terminating || !last.preparingDelete || !last.hooked(s.in.Hooks.PreDelete)
}

// noteBlocked notes what all that is done in order waits for.
func (s *slotted) noteBlocked() {
	waiting := len(s.surplus)
	for _, m := range s.wanted {
		if m == nil || m.MarkedForDeletion {
			waiting++
		}
	}
	if name := s.in.Slots[s.blocked]; waiting > 0 {
		s.note(NoteOutOfOrder, name, fmt.Sprintf("%d to create or delete wait until it is available", waiting))
	}
}

// textFinished is why an instance that has finished is deleted.
const textFinished = "it has finished, and no instance before it is to be created or deleted first"

// deleteLast deletes the last surplus instance. One that is not ready waits for those before it that are not
// ready either, as they may be what it needs to become ready, which one that has finished never does.
func (s *slotted) deleteLast() {
	last := s.surplus[0]
	weak := func(m *member) bool { return !m.ready }
	switch before := slices.IndexFunc(s.surplus[1:], weak); {
	case last.isFinished():
		s.delete(last, NoteFinished, textFinished)
	case last.Terminating:
		s.note(NoteOutOfOrder, last.Name, "the others to delete wait until it is gone")
	case last.preparingDelete:
		s.finishDeletions(s.surplus[:1])
	case last.available || !last.ready && before < 0:
		s.delete(last, NoteNoSlot, "its slot is not wanted, and it is the last")
	default:
		s.note(NoteOutOfOrder, last.Name, "the last is not available, so that none is deleted")
	}
}

// deleteDoomedSlots deletes what the user chose, as a part of updates, which determine at which revision an instance
// comes back. One that does not fit into the budget does not stop those after it.
func (s *slotted) deleteDoomedSlots(b walk) {
	waiting, stopped := 0, s.isStopped()
	for _, m := range slices.Backward(s.wanted) {
		switch {
		case m == nil || !m.isChosen():
		case !stopped && b.take(m):
			s.delete(m, NoteChosen, "it was chosen")
		default:
			waiting++
		}
	}
	why := spent(b.Unavailable, b.Max)
	if stopped {
		why = "when updates run"
	}
	s.noteWaiting(NoteDeleteLimited, waiting, "to be deleted, as was asked, "+why)
}

// isChosen reports whether the user chose an instance to be deleted, which has not begun.
func (m *member) isChosen() bool { return m.MarkedForDeletion && !m.preparingDelete && !m.Terminating }

func (s *slotted) budget() walk {
	most := saturatingAdd(s.in.Limits.MaxUnavailable, s.spare)
	return walk{Budget: Budget{Max: most, Unavailable: s.unavailable + s.impaired}, gone: s.unavailable}
}

// updateSlots updates from the last slot to the first, but for those that the partition keeps.
func (s *slotted) updateSlots() {
	due := s.dueSlots()
	if len(due) == 0 || s.standstill(len(due)) {
		return
	}
	b := s.budget()
	if s.in.InOrder && (s.blocked < len(s.wanted) || s.removesSurplus()) {
		b.Max = 0 // to repair is all that may be done out of order
		if !s.in.UnavailableFirst {
			all := len(due)
			due = slices.DeleteFunc(due, func(m *member) bool { return !m.preparing && !m.Impaired }) // those updates have begun
			s.noteWaiting(NoteUpdateLimited, all-len(due), "to be updated until all slots are available, and no others are left")
		}
	}
	due = slices.DeleteFunc(due, func(m *member) bool { return m.NotNow })
	s.repairFirst(due)
	bringForward(due, func(m *member) bool { return m.Impaired }) // they may need their update to serve again
	s.update(due, b)
}

// dueSlots are the instances to update, in order.
func (s *slotted) dueSlots() []*member {
	keep := int(s.in.Limits.Partition)
	if !s.unordered() {
		var due []*member
		for _, m := range slices.Backward(s.wanted[keep:]) {
			if !updatedInTime(m) {
				due = append(due, m)
			}
		}
		return due
	}
	done := 0
	var preparing, due []*member
	for _, m := range slices.Backward(s.wanted) {
		switch {
		case updatedInTime(m):
			done++
		case m.NotNow:
		case s.isUpdated(m):
			preparing = append(preparing, m)
		default:
			due = append(due, m)
		}
	}
	s.prioritise(due)
	due = append(preparing, s.scattered(due)...)
	return due[:min(max(len(s.wanted)-keep-done, 0), len(due))]
}

// updatedInTime reports whether the instance of a slot is updated, or will be when it comes back.
func updatedInTime(m *member) bool {
	return m == nil || m.Terminating || m.preparingDelete || m.Updated && !m.Outdated
}
