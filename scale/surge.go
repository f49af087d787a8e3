package scale

import (
	"fmt"
	"slices"
)

// assignSurge finds the instances at the names for surge. One at a name that is a slot is that of the slot.
func (s *slotted) assignSurge(names map[string]*member, position map[string]int) error {
	const surge = -1
	for _, name := range s.in.SurgeSlots {
		at, known := position[name]
		switch {
		case name == "" || known && at == surge:
			return &InputError{"SurgeSlots", fmt.Sprintf("must not have %q twice, nor an empty name", name)}
		case known:
			continue
		}
		position[name] = surge
		m := names[name]
		s.surge, s.surgeNames = append(s.surge, m), append(s.surgeNames, name)
		if m != nil && m.serves() {
			s.spare++
		}
	}
	return nil
}

// serves reports whether an instance is available, and nothing beside its pods keeps it from serving.
func (m *member) serves() bool { return m.available && !m.Impaired }

// surgeLimits returns how many surge instances may stay, and how many of them updates can use. None are created once no
// slot is due, so that one that becomes unavailable later brings none back. Those that exist stay until the last update
// is done.
func (s *slotted) surgeLimits() (stay, use int) {
	if len(s.surge) == 0 || s.isStopped() {
		return 0, 0
	}
	stay = int(s.in.Limits.MaxSurge)
	switch due, underWay := s.progress(); {
	case due > 0:
		return stay, min(stay, due+underWay)
	case underWay > 0:
		return stay, 0
	}
	return 0, 0
}

// progress returns how many slots are due to be updated or to be filled again, and how many are updated, or come back,
// and are not available yet. An instance that is not to be updated now is due all the same.
func (s *slotted) progress() (due, underWay int) {
	done, chosen, keep := 0, 0, int(s.in.Limits.Partition)
	for i, m := range s.wanted {
		inTime := updatedInTime(m)
		if inTime && !s.isPinned(i) {
			done++
		}
		switch {
		case m != nil && m.isChosen():
			chosen++
		case inTime && (m == nil || !m.available):
			underWay++
		case !inTime && (m.pinned || !s.unordered() && i >= keep):
			due++
		}
	}
	if s.unordered() { // any of those that are due may be chosen
		return due + max(s.others-keep-done, chosen), underWay
	}
	return due + chosen, underWay
}

// createSurge creates what updates can use, after all slots, and returns how many are missing, and how many of those
// that exist are not available. An instance without a slot takes the place of one, until it is gone.
func (s *slotted) createSurge(unavailable, limit int32) (missing int, unavailableSurge int32) {
	_, lacking := s.surgeLimits()
	room := int(s.in.Limits.MaxSurge) - len(s.surplus)
	for _, m := range s.surge {
		if m == nil {
			continue
		}
		room--
		if m.isUseful() {
			lacking--
		}
		if !m.available {
			unavailableSurge++
		}
	}
	for i, name := range s.surgeNames {
		if s.surge[i] != nil || missing >= min(lacking, room) {
			continue
		}
		missing++
		if saturatingAdd(unavailable+unavailableSurge, int32(len(s.plan.Create))) < limit {
			s.plan.Create = append(s.plan.Create, Creation{Slot: name, Updated: true})
		}
	}
	return missing, unavailableSurge
}

// isUseful reports whether a surge instance has the right revision, and is not on its way out.
func (m *member) isUseful() bool {
	return m.Updated && !m.MarkedForDeletion && !m.preparingDelete && !m.Terminating
}

// deleteSurge deletes surge instances that updates have no use for, the last first, as far as enough instances are
// available without them. One that does not fit into the budget does not stop those before it.
func (s *slotted) deleteSurge(b *walk) {
	stay, _ := s.surgeLimits()
	waiting := 0
	var tooMany []*member
	for _, m := range s.surge {
		switch {
		case m == nil || m.preparingDelete || m.Terminating:
		case m.isUseful() && stay > 0:
			stay--
		default:
			tooMany = append(tooMany, m)
		}
	}
	for _, m := range slices.Backward(tooMany) {
		if m.serves() {
			if b.Unavailable >= b.Max {
				waiting++
				continue
			}
			b.Max-- // it no longer makes up for a slot
		}
		switch {
		case m.MarkedForDeletion:
			s.delete(m, NoteChosen, "it was chosen")
		case !m.Updated:
			s.delete(m, NoteScaleIn, "it is beyond the slots, and has another revision than these are updated to")
		default:
			s.delete(m, NoteScaleIn, "it is beyond the slots, and no update needs it")
		}
	}
	s.noteWaiting(NoteDeleteLimited, waiting, "to be deleted until more are available")
}
