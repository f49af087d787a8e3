package scale_test

import (
	"fmt"
	"slices"

	"github.com/kruisekit/kruisekit/scale"
)

// unavailableUpTo is how many instances up to the last one to create are not available, once all of these exist.
func (o slotOracle) unavailableUpTo(creations []scale.Creation) int {
	n, unavailable := 0, 0
	names := slices.Concat(o.in.Slots, o.surgeNames())
	slices.SortStableFunc(names[len(o.in.Slots):], func(a, b string) int {
		return int(truth(o.missing(a)) - truth(o.missing(b)))
	})
	for _, slot := range names {
		created := slices.ContainsFunc(creations, func(c scale.Creation) bool { return c.Slot == slot })
		if unavailable += int(truth(created || !o.missing(slot) && !o.fine(slot))); created {
			n = unavailable
		}
	}
	return n
}

func crossesSlots(input scale.Input, plan scale.Result) string {
	o := newSlotOracle(input)
	wanted := func(name string) bool { return slices.Contains(input.Slots, name) }
	surge := func(name string) bool { return slices.Contains(o.surgeNames(), name) }
	settled, disrupted, unplaced, moved := 0, int32(0), 0, 0
	for _, i := range input.Instances {
		if wanted(i.Name) {
			settled += int(truth(i.Updated))
		}
	}
	for _, i := range slices.Concat(plan.Delete, plan.Update) {
		if wanted(i.Name) || surge(i.Name) {
			disrupted += int32(truth(o.available(i)))
		}
	}
	for _, i := range plan.Delete {
		unplaced += int(1 - truth(wanted(i.Name)))
	}
	for _, b := range plan.Create {
		if !wanted(b.Slot) && !surge(b.Slot) || !o.missing(b.Slot) {
			return "it creates what is there, or not wanted"
		}
	}
	for _, i := range plan.Update {
		at := slices.Index(input.Slots, i.Name)
		moved++
		if at < 0 || input.Priority == nil && at < int(input.Limits.Partition) {
			return "it crosses the partition"
		}
	}
	if problem := crossesSurge(o, plan); problem != "" {
		return problem
	}
	n := int32(len(plan.Create))
	switch {
	case disrupted > max(0, input.Limits.MaxUnavailable-o.broken()+o.serving(o.surge())):
		return fmt.Sprintf("%d are unavailable, and %d more are to be", o.broken()-o.serving(o.surge()), disrupted)
	case n > 0 && !input.InOrder && int64(o.unavailableUpTo(plan.Create)) > int64(scalingOf(input.Limits)):
		return "it creates more than may be unavailable"
	case input.Priority != nil && moved > 0 && settled+moved > o.n-o.keep:
		return "it crosses the partition"
	case input.InOrder && (n > 1 || unplaced > 1):
		return "it does two things at once, and not in order"
	case plan.Difference != scale.Difference{} || plan.Backward:
		return "slots have no such thing"
	}
	return ""
}

// crossesSurge says which law of surge the plan breaks.
func crossesSurge(o slotOracle, plan scale.Result) string {
	created, beside := 0, 0
	for _, i := range o.in.Instances {
		beside += int(1 - truth(slices.Contains(o.in.Slots, i.Name)))
	}
	due := slices.ContainsFunc(o.in.Instances, func(i scale.Instance) bool {
		return slices.Contains(o.in.Slots, i.Name) && (!i.Updated || i.MarkedForDeletion) && !i.Terminating && !leaving(i)
	})
	for _, c := range plan.Create {
		if slices.Contains(o.surgeNames(), c.Slot) {
			if created++; !c.Updated || !due || o.in.Updates != scale.UpdatesRun {
				return c.Slot + " is no update's"
			}
		}
	}
	if created > 0 && beside+created > int(o.in.Limits.MaxSurge) {
		return fmt.Sprintf("%d are beside the slots, and %d more are to be", beside, created)
	}
	return ""
}
