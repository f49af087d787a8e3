package scale

import (
	"math"

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
	return (&counts{old: old, updated: updated}).differ(l)
}

// counts are the instances of both sides, and those that are pinned, of which some are due to be updated.
type counts struct {
	old, updated, pinned Count
	due                  int32
}

// excess is how many instances each side has too many, or, below zero, lacks. Pinned instances that stay are replicas,
// and the partition applies to the others. keep is how many of these stay old.
func (c *counts) excess(l Limits) (old, updated, keep int32) {
	replicas, keep := l.Replicas, l.Partition
	if pinned := c.pinned.Unavailable + c.pinned.Available; pinned > 0 {
		replicas = max(replicas-pinned, 0)
		keep = min(keep, replicas)
	}
	return c.old.staying() - keep, c.updated.staying() - (replicas - keep), keep
}

func (c *counts) differ(l Limits) Difference {
	old, updated := c.old, c.updated
	n := old.all() + updated.all() + c.pinned.all()
	oldDiff, newDiff, keep := c.excess(l)
	if l.NoRollback {
		oldDiff, newDiff = max(oldDiff, 0), min(newDiff, 0)
	}
	preparing := old.PreparingDelete + updated.PreparingDelete + c.pinned.PreparingDelete
	unavailable := preparing + old.Unavailable + updated.Unavailable + c.pinned.Unavailable
	replaced := updated.MarkedForDeletion + c.pinned.MarkedForDeletion
	markedForDeletion := old.MarkedForDeletion + replaced

	surge, surgeOld := int32(0), int32(0)
	if l.MaxSurge > 0 {
		forDoomed, forDoomedOld := l.surgeForDoomed(markedForDeletion, replaced, unavailable)
		forUpdate, forUpdateOld := surgeForUpdate(oldDiff, newDiff)
		forUpdate += c.due
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
	target, targetOld := l.Replicas+surge, keep+surgeOld

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
	spare := l.spare(n)
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

// spare is how many of n instances may be unavailable.
func (l Limits) spare(n int32) int32 { return saturatingAdd(l.MaxUnavailable, n-l.Replicas) }

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
