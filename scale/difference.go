package scale

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/utils/ptr"
)

// Count is how many instances of one side, old or updated, there are. Each instance counts once.
type Count struct {
	// PreparingDelete are held by a hook before their deletion.
	PreparingDelete int32
	// MarkedForDeletion are to be deleted by the user's choice, and not preparingDelete yet.
	MarkedForDeletion int32
	// Unavailable are neither preparingDelete nor markedForDeletion, and not available.
	Unavailable int32
	// Available are the rest.
	Available int32
}

// staying are the instances that are not preparingDelete.
func (c Count) staying() int32 { return c.MarkedForDeletion + c.Unavailable + c.Available }

func (c Count) all() int32 { return c.PreparingDelete + c.staying() }

// Limits are the bounds of a workload, resolved to numbers of instances.
type Limits struct {
	// Replicas is the wanted number.
	Replicas int32
	// Partition is how many of them stay old.
	Partition int32
	// MaxUnavailable is the budget of updates and of deletions that the user chose.
	MaxUnavailable int32
	// MaxSurge is how many instances more than Replicas there may be meanwhile.
	MaxSurge int32
	// MaxUnavailableScaling limits how many instances may be unavailable while scaling out.
	// Nil is no limit.
	MaxUnavailableScaling *int32
	// NoRollback leaves instances beyond the partition updated, when it is raised.
	NoRollback bool
	// ExcludePreparingDelete does not count instances that are preparingDelete.
	ExcludePreparingDelete bool
}

// Difference is what separates the instances that are from those that are wanted.
type Difference struct {
	// Create is how many to create now, of CreateMissing that are missing; CreateOld of the missing ones are old.
	Create, CreateMissing, CreateOld int32
	// Delete is how many there are too many; DeleteOld of them, old ones.
	Delete, DeleteOld int32
	// DeleteAvailable is how many of all instances to delete, chosen by the user or not, may be available ones.
	DeleteAvailable int32
	// Update is how many to move to the new revision, or, when negative, back to the old one.
	Update int32
	// UpdateUnavailable is how many may be unavailable while updating, those of surplus instances included. It may
	// be zero or below: nothing can be updated then that is available.
	UpdateUnavailable int32
}

// Differ computes the difference. old and updated count the instances by their revision.
func Differ(old, updated Count, l Limits) Difference {
	n := old.all() + updated.all()
	oldDiff, newDiff := excess(old, updated, l)
	if l.NoRollback {
		oldDiff, newDiff = max(oldDiff, 0), min(newDiff, 0)
	}
	preparing := old.PreparingDelete + updated.PreparingDelete
	unavailable := preparing + old.Unavailable + updated.Unavailable
	markedForDeletion := old.MarkedForDeletion + updated.MarkedForDeletion

	surge, surgeOld := int32(0), int32(0)
	if l.MaxSurge > 0 {
		forDoomed, forDoomedOld := l.surgeForDoomed(markedForDeletion, updated.MarkedForDeletion, unavailable)
		forUpdate, forUpdateOld := surgeForUpdate(oldDiff, newDiff)
		surge, surgeOld = forDoomed, forDoomedOld
		if forUpdate > forDoomed {
			surge, surgeOld = forUpdate, forUpdateOld
		}
		surge = min(surge, l.MaxSurge)
		surgeOld = min(surgeOld, surge)
	}
	current, currentOld := n, old.all()
	if l.ExcludePreparingDelete {
		current -= preparing
		currentOld -= old.PreparingDelete
	}
	target, targetOld := l.Replicas+surge, l.Partition+surgeOld

	d := Difference{}
	if missing := target - current; missing > 0 {
		d.CreateMissing = missing
		d.CreateOld = max(targetOld-currentOld, 0)
		d.Create = min(missing, max(l.scaling()-unavailable, 0))
	}
	if surplus := current - markedForDeletion - target; surplus > 0 {
		d.Delete = surplus
		d.DeleteOld = max(currentOld-old.MarkedForDeletion-targetOld, 0)
	}
	spare := saturatingAdd(l.MaxUnavailable, n-l.Replicas)
	if markedForDeletion > 0 || d.Delete > 0 {
		d.DeleteAvailable = max(saturatingAdd(spare, -unavailable), 0)
	}
	d.Update = -newDiff
	if abs(oldDiff) <= abs(newDiff) {
		d.Update = oldDiff
	}
	if d.Update != 0 {
		d.UpdateUnavailable = spare
	}
	return d
}

// excess is how many instances each side has too many, or, below zero, lacks.
func excess(old, updated Count, l Limits) (oldDiff, newDiff int32) {
	return old.staying() - l.Partition, updated.staying() - (l.Replicas - l.Partition)
}

// surgeForDoomed is how many instances more than the wanted ones deletions by choice need that the budget does not
// cover, and how many of these are old. replaced are those in whose place no old one is created for that.
func (l Limits) surgeForDoomed(markedForDeletion, replaced, unavailable int32) (all, old int32) {
	if markedForDeletion <= 0 {
		return 0, 0
	}
	all = min(max(unavailable+markedForDeletion-l.MaxUnavailable, 0), markedForDeletion)
	return all, max(all-replaced, 0)
}

// surgeForUpdate is how many instances more updates can use, where one side has too many and the other too few, and how
// many of these are old. It is the excess of the side that has too many, which lasts until the other side is complete.
// What the other side lacks is no measure: it shrinks with each surge instance that is created.
func surgeForUpdate(oldDiff, newDiff int32) (all, old int32) {
	switch {
	case oldDiff > 0 && newDiff < 0:
		return oldDiff, 0
	case oldDiff < 0 && newDiff > 0:
		return newDiff, newDiff
	}
	return 0, 0
}

func abs(n int32) int32 {
	return max(n, -n)
}

func saturatingAdd(a, b int32) int32 {
	return int32(min(max(int64(a)+int64(b), math.MinInt32), math.MaxInt32))
}

// scaling is how many instances may be unavailable while scaling out.
func (l Limits) scaling() int32 {
	return ptr.Deref(l.MaxUnavailableScaling, math.MaxInt32)
}

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

// serves reports whether an instance is available, and nothing besides its pods keeps it from serving.
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
		if inTime {
			done++
		}
		switch {
		case m != nil && m.isChosen():
			chosen++
		case inTime && (m == nil || !m.available):
			underWay++
		case !inTime && !s.unordered() && i >= keep:
			due++
		}
	}
	if s.unordered() { // any of those that are due may be chosen
		return due + max(len(s.wanted)-keep-done, chosen), underWay
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
