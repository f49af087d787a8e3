package scale_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
)

// slotOracle plans for slots one at a time, by looking through all instances for each.
type slotOracle struct {
	oracle
	n, keep int
}

func newSlotOracle(input scale.Input) slotOracle {
	return slotOracle{oracle{input}, len(input.Slots), int(input.Limits.Partition)}
}

func (o slotOracle) at(slot string) *scale.Instance {
	for _, i := range o.in.Instances {
		if i.Name == slot {
			return &i
		}
	}
	return nil
}

func (o slotOracle) missing(slot string) bool { return o.at(slot) == nil }

func (o slotOracle) fine(slot string) bool { return !o.missing(slot) && o.available(*o.at(slot)) }

func (o slotOracle) broken() int32 {
	n := int32(0)
	for _, slot := range o.in.Slots {
		if !o.fine(slot) {
			n++
		}
	}
	return n
}

func (o slotOracle) plan() string {
	plan := scale.Result{}
	if !o.in.UpdateOnly {
		plan.Restore = o.restore()
		if len(plan.Restore) == 0 && !o.in.NoCreate {
			plan.Create = o.create()
		}
		if len(plan.Restore)+len(plan.Create) == 0 {
			plan.Delete = o.delete()
		}
	}
	if len(plan.Restore)+len(plan.Create)+len(plan.Delete) == 0 && o.in.Updates == scale.UpdatesRun {
		plan.Update = o.update()
	}
	return story(plan)
}

func (o slotOracle) restore() []scale.Instance {
	var out []scale.Instance
	for position, slot := range o.in.Slots {
		i := o.at(slot)
		if i == nil || !leaving(*i) || i.Terminating || i.MarkedForDeletion ||
			o.in.Hooks != nil && o.in.Hooks.PreDelete.MarkPodNotReady {
			continue
		}
		kept := position < o.keep
		if o.in.Priority != nil {
			kept = o.keep == o.n
		}
		if i.Updated || kept || o.in.Updates == scale.UpdatesOnDelete {
			out = append(out, *i)
		}
	}
	return out
}

func (o slotOracle) create() []scale.Creation {
	var out []scale.Creation
	old := 0
	broken, limit := int32(0), int64(scalingOf(o.in.Limits))
	for _, slot := range o.in.Slots {
		if !o.missing(slot) && !o.isUpdated(*o.at(slot)) {
			old++
		}
	}
	if o.in.InOrder {
		limit = math.MaxInt64
	}
	for position, slot := range o.in.Slots {
		if !o.missing(slot) && !o.fine(slot) {
			broken++
		}
		if o.missing(slot) && int64(broken)+int64(len(out)) < limit {
			keeps := position < o.keep
			if o.in.Priority != nil {
				keeps = old < o.keep
			}
			if keeps = keeps && o.in.Updates != scale.UpdatesOnDelete; keeps {
				old++
			}
			out = append(out, scale.Creation{Slot: slot, Updated: !keeps})
		}
		if o.in.InOrder && !o.fine(slot) {
			break
		}
	}
	return append(out, o.createSurge(int64(broken)+int64(len(out)), limit)...)
}

// surplus are the instances without a slot, the last one first.
func (o slotOracle) surplus() []scale.Instance {
	ordinal := func(name string) (n int) {
		if _, err := fmt.Sscanf(name, "web-%d", &n); err != nil {
			return 0
		}
		return n
	}
	surplus := slices.DeleteFunc(slices.Clone(o.in.Instances), func(i scale.Instance) bool {
		return slices.Contains(o.in.Slots, i.Name) || slices.Contains(o.in.SurgeSlots, i.Name)
	})
	return sorted(surplus, func(a, b scale.Instance) bool { return ordinal(a.Name) > ordinal(b.Name) })
}

func (o slotOracle) delete() []scale.Instance {
	var released []scale.Instance
	for _, i := range o.in.Instances {
		if leaving(i) && !i.Terminating && !o.hooked(i) && (slices.Contains(o.in.Slots, i.Name) || !o.in.InOrder) {
			released = append(released, i)
		}
	}
	surplus := o.surplus()
	if !o.in.InOrder {
		surplus = slices.DeleteFunc(surplus, func(i scale.Instance) bool { return i.Terminating || leaving(i) })
	}
	out := sorted(released, func(a, b scale.Instance) bool { return a.Name < b.Name })
	if o.in.InOrder {
		for _, slot := range o.in.Slots {
			if i := o.at(slot); i != nil && i.Terminating && i.Finished {
				return append(out, *i)
			}
			if !o.fine(slot) {
				return out
			}
		}
		if len(surplus) > 0 && !o.held(surplus[0]) {
			return append(out, o.last(surplus)...)
		}
		surplus = nil
	}
	out = append(out, surplus...)
	surge := o.surgeToDelete()
	out = append(out, surge...)
	if o.in.Updates != scale.UpdatesRun {
		return out
	}
	broken := o.broken() - o.serving(o.surge()) + o.serving(surge)
	for _, slot := range slices.Backward(o.in.Slots) {
		i := o.at(slot)
		if i == nil || !i.MarkedForDeletion || i.Terminating || leaving(*i) {
			continue
		}
		if !o.fine(slot) || broken < o.in.Limits.MaxUnavailable {
			out = append(out, *i)
			if o.fine(slot) {
				broken++
			}
		}
	}
	return out
}

func (o slotOracle) held(i scale.Instance) bool { return !i.Terminating && leaving(i) && o.hooked(i) }

// last is the last one, if it may be deleted: by the rules for a pod, then by the first one that is not healthy.
func (o slotOracle) last(surplus []scale.Instance) []scale.Instance {
	firstUnhealthy := ""
	for _, i := range surplus {
		if !o.ready(i) {
			firstUnhealthy = i.Name
		}
	}
	i := surplus[0]
	switch {
	case i.Terminating && !i.Finished:
		return nil
	case leaving(i) || o.available(i) || i.Terminating && i.Finished || firstUnhealthy == i.Name:
		return surplus[:1]
	}
	return nil
}

func (o slotOracle) update() []scale.Instance {
	budget, broken := o.in.Limits.MaxUnavailable, o.broken()-o.serving(o.surge())
	surplus := o.surplus()
	onlyBegun := false
	if o.in.InOrder && (broken > 0 || len(surplus) > 0 && !o.held(surplus[0])) {
		budget, onlyBegun = 0, !o.in.UnavailableFirst
	}
	var out []scale.Instance
	for _, i := range o.candidates() {
		fine := o.available(i)
		if onlyBegun && !slices.ContainsFunc(podsOf(i), func(pod *corev1.Pod) bool {
			return lifecycle.StateOf(pod) == kruise.LifecycleStatePreparingUpdate
		}) {
			continue
		}
		if fine && broken >= budget {
			return out
		}
		if out = append(out, i); fine {
			broken++
		}
	}
	return out
}

func (o slotOracle) candidates() []scale.Instance {
	var done, held, due []scale.Instance
	for position, slot := range slices.Backward(o.in.Slots) {
		i := o.at(slot)
		switch {
		case o.in.Priority == nil && position < o.keep:
		case i == nil:
			done = append(done, scale.Instance{Updated: true})
		case i.Updated || i.Terminating || leaving(*i):
			done = append(done, *i)
		case o.in.Priority != nil && o.isUpdated(*i):
			held = append(held, *i)
		default:
			due = append(due, *i)
		}
	}
	labels := func(i scale.Instance) map[string]string {
		if len(podsOf(i)) == 0 {
			return nil
		}
		return podsOf(i)[0].Labels
	}
	if o.in.Priority != nil {
		if err := scale.Prioritise(due, labels, o.in.Priority); err != nil {
			return nil
		}
		due = scale.Scatter(due, o.in.Instances, labels, o.in.Scatter)
	}
	all := slices.Concat(done, held, due)
	if o.in.Priority != nil {
		all = all[:min(len(all), o.n-o.keep)]
	}
	out := slices.DeleteFunc(slices.Clone(all), func(i scale.Instance) bool {
		return i.Updated || i.Terminating || leaving(i)
	})
	if o.in.UnavailableFirst {
		fine := slices.DeleteFunc(slices.Clone(out), func(i scale.Instance) bool { return !o.available(i) })
		out = append(slices.DeleteFunc(out, o.available), fine...)
	}
	return out
}

// TestSlotsAgainstTheOracle compares whole plans.
func TestSlotsAgainstTheOracle(t *testing.T) {
	eachCase(t, 20_000, func(r *random) string {
		input := r.slots(r.input())
		if r.once(2) && input.Priority == nil {
			input.Priority = &kruise.UpdatePriorityStrategy{}
		}
		got, want := compute(t, input), newSlotOracle(input).plan()
		got.Notes = nil
		if strings.TrimSpace(story(got)) != strings.TrimSpace(want) {
			return "want " + want + ", got " + story(got)
		}
		return ""
	})
}
