package scale_test

import (
	"slices"

	"github.com/kruisekit/kruisekit/scale"
)

// surge are the instances at the names for surge, in the order of these.
func (o slotOracle) surge() []scale.Instance {
	var out []scale.Instance
	for _, name := range o.surgeNames() {
		if i := o.at(name); i != nil {
			out = append(out, *i)
		}
	}
	return out
}

func (o slotOracle) surgeNames() []string {
	return slices.DeleteFunc(slices.Clone(o.in.SurgeSlots), func(name string) bool {
		return slices.Contains(o.in.Slots, name)
	})
}

// serving is how many are available.
func (o slotOracle) serving(all []scale.Instance) int32 {
	n := int32(0)
	for _, i := range all {
		n += int32(truth(o.available(i)))
	}
	return n
}

// progress is how many slots are due to be updated, or chosen to be deleted, and how many have been or come back, and
// are not available yet.
func (o slotOracle) progress() (due, underWay int) {
	settled, chosen := 0, 0
	for position, slot := range o.in.Slots {
		i := o.at(slot)
		back := i == nil || i.Updated || i.Terminating || leaving(*i)
		if back {
			settled++
		}
		switch {
		case i != nil && i.MarkedForDeletion && !i.Terminating && !leaving(*i):
			chosen++
		case back && !o.fine(slot):
			underWay++
		case !back && o.in.Priority == nil && position >= o.keep:
			due++
		}
	}
	if o.in.Priority != nil {
		return due + max(o.n-o.keep-settled, chosen), underWay
	}
	return due + chosen, underWay
}

// surgeStays is how many surge instances may stay.
func (o slotOracle) surgeStays() int {
	due, underWay := o.progress()
	if o.in.Updates != scale.UpdatesRun || due+underWay == 0 {
		return 0
	}
	return min(int(o.in.Limits.MaxSurge), len(o.surgeNames()))
}

// serves reports whether updates can use a surge instance.
func serves(i scale.Instance) bool {
	return i.Updated && !i.MarkedForDeletion && !i.Terminating && !leaving(i)
}

func (o slotOracle) createSurge(unavailable, limit int64) []scale.Creation {
	due, underWay := o.progress()
	if o.in.InOrder || due == 0 {
		return nil
	}
	lacking := min(o.surgeStays(), due+underWay)
	room := int(o.in.Limits.MaxSurge) - len(o.surplus()) - len(o.surge())
	for _, i := range o.surge() {
		lacking -= int(truth(serves(i)))
		unavailable += 1 - truth(o.available(i))
	}
	var out []scale.Creation
	for _, name := range o.surgeNames() {
		if o.missing(name) && len(out) < lacking && len(out) < room && unavailable < limit {
			out = append(out, scale.Creation{Slot: name, Updated: true})
			unavailable++
		}
	}
	return out
}

// surgeToDelete are the surge instances that are too many, the last first, as far as enough are available without them.
func (o slotOracle) surgeToDelete() []scale.Instance {
	stays, spare := o.surgeStays(), o.in.Limits.MaxUnavailable-o.broken()+o.serving(o.surge())
	var tooMany, out []scale.Instance
	for _, i := range o.surge() {
		switch {
		case i.Terminating || leaving(i):
		case serves(i) && stays > 0:
			stays--
		default:
			tooMany = append(tooMany, i)
		}
	}
	for _, i := range slices.Backward(tooMany) {
		if !o.available(i) || spare > 0 {
			out = append(out, i)
			spare -= int32(truth(o.available(i)))
		}
	}
	return out
}
