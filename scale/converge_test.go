package scale_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// world carries out plans, and lets pods become ready, one after the other or never.
type world struct {
	*random
	input   scale.Input
	inPlace bool
	broken  bool // some pods never become ready
	born    int
	never   map[string]bool
	// disturbed is until when the user changes the workload.
	disturbed int
}

// apply does what a controller does with a plan.
func (w *world) apply(plan scale.Result) {
	at := map[string]int{}
	for i := range w.input.Instances {
		at[w.input.Instances[i].Name] = i
	}
	for _, i := range plan.Restore {
		in(kruise.LifecycleStatePreparingNormal)(w.input.Instances[at[i.Name]].Pods[0])
	}
	for _, i := range plan.Update {
		w.update(&w.input.Instances[at[i.Name]], !plan.Backward)
	}
	for _, i := range plan.Delete {
		instance := &w.input.Instances[at[i.Name]]
		switch {
		case w.input.Hooks != nil && instance.Pods[0].Labels["hold"] == "yes":
			in(kruise.LifecycleStatePreparingDelete)(instance.Pods[0])
		default:
			instance.Terminating = true
		}
	}
	for _, b := range plan.Create {
		w.born++
		name := fmt.Sprintf("%s-%d", pick(w.random, "a", "b", "c"), w.born)
		if b.Slot != "" {
			name = b.Slot
		}
		w.never[name] = w.broken && w.once(10)
		i := old(name, onNode(fmt.Sprintf("n%d", w.Intn(5))), notReady, in(kruise.LifecycleStatePreparingNormal))
		if w.once(3) {
			labelled("hold", "yes")(i.Pods[0])
		}
		i.Updated = b.Updated
		w.input.Instances = append(w.input.Instances, i)
	}
}

func (w *world) update(i *scale.Instance, updated bool) {
	p := i.Pods[0]
	switch {
	case w.inPlace && w.input.Hooks != nil && p.Labels["hold"] == "yes":
		in(kruise.LifecycleStatePreparingUpdate)(p)
	case w.inPlace:
		i.Updated = updated
		in(kruise.LifecycleStateUpdating)(p)
		notReady(p)
	case w.input.Slots != nil:
		i.Terminating = true
	default:
		i.MarkedForDeletion = true
	}
}

// tick lets a second pass: some of what can happen by itself does.
func (w *world) tick() {
	w.input.Now = w.input.Now.Add(time.Second)
	w.input.Instances = slices.DeleteFunc(w.input.Instances, func(i scale.Instance) bool {
		return i.Terminating && w.once(2)
	})
	for k := range w.input.Instances {
		i := &w.input.Instances[k]
		if p := i.Pods[0]; w.once(2) && !i.Terminating {
			switch kruise.LifecycleState(p.Labels[kruise.LifecycleStateKey]) {
			case kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateUpdating:
				in(kruise.LifecycleStateNormal)(p)
			case kruise.LifecycleStatePreparingDelete, kruise.LifecycleStatePreparingUpdate:
				delete(p.Labels, "hold")
			default:
				if !isReady(p) && !w.never[i.Name] {
					p.Status.Conditions[0].Status = "True"
					p.Status.Conditions[0].LastTransitionTime.Time = w.input.Now
				}
			}
		}
	}
	w.Shuffle(len(w.input.Instances), reflect.Swapper(w.input.Instances))
}

func newWorld(r *random) *world {
	w := &world{random: r, inPlace: r.once(2), broken: r.once(3), never: map[string]bool{}}
	w.input = scale.Input{
		Now: now(), MinReadySeconds: r.n(2), InOrder: r.once(3), UnavailableFirst: r.once(3),
		Limits: scale.Limits{
			Replicas:               r.n(12),
			MaxUnavailable:         1 + r.n(3),
			MaxSurge:               pick[int32](r, 0, 0, 2),
			MaxUnavailableScaling:  ptr.To(1 + r.n(12)),
			NoRollback:             r.once(2),
			ExcludePreparingDelete: r.once(2),
		},
	}
	w.input.Limits.Partition = r.n(w.input.Limits.Replicas)
	if r.once(2) {
		w.input.Hooks = &kruise.Lifecycle{
			PreDelete:     &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
			InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
		}
	}
	if r.once(3) {
		w.input.Priority = &kruise.UpdatePriorityStrategy{
			OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "hold"}},
		}
	}
	if r.once(2) {
		w.input.Slots = []string{}
		for i := range w.input.Limits.Replicas {
			w.input.Slots = append(w.input.Slots, fmt.Sprintf("web-%d", i))
		}
	}
	if w.input.Slots != nil && r.once(2) {
		w.disturbed, w.input.InOrder = r.Intn(60), false
		w.resize(w.input.Limits.Replicas)
		w.rule(1+r.n(1), r.n(1))
	}
	if w.input.Slots == nil && w.input.Limits.MaxSurge > 0 && r.once(2) {
		w.input.Limits.MaxUnavailable = 0
	}
	w.input = sensible(w.input)
	for i := range r.Intn(14) {
		instance := old(fmt.Sprintf("web-%d", i), onNode(fmt.Sprintf("n%d", r.Intn(5))))
		instance.Updated, instance.MarkedForDeletion = r.once(3), r.once(6)
		if r.once(4) {
			notReady(instance.Pods[0])
			w.never[instance.Name] = w.broken && r.once(2)
		}
		w.input.Instances = append(w.input.Instances, instance)
	}
	return w
}

// rule sets limits that let updates go on.
func (w *world) rule(surge, unavailable int32) {
	w.input.Limits.MaxSurge, w.input.Limits.MaxUnavailable = surge, max(unavailable, 1-surge)
}

// resize has other slots, and as names for surge those after them.
func (w *world) resize(n int32) {
	w.input.Slots, w.input.SurgeSlots = []string{}, nil
	for i := range n + 4 {
		if name := fmt.Sprintf("web-%d", i); i < n {
			w.input.Slots = append(w.input.Slots, name)
		} else {
			w.input.SurgeSlots = append(w.input.SurgeSlots, name)
		}
	}
	w.input.Limits.Replicas, w.input.Limits.Partition = n, min(w.input.Limits.Partition, n)
}

// disturb changes what is wanted, now and then, until the world is left alone.
func (w *world) disturb(step int) {
	if step == w.disturbed && len(w.input.SurgeSlots) > 0 {
		w.input.Updates = pick(w.random, scale.UpdatesRun, scale.UpdatesRun, scale.UpdatesPaused)
		w.rule(w.n(2), w.n(1))
	}
	if step >= w.disturbed || !w.once(6) {
		return
	}
	switch w.Intn(5) {
	case 0:
		w.input.Updates = pick(w.random, scale.UpdatesRun, scale.UpdatesPaused, scale.UpdatesOnDelete)
	case 1: // a rollback
		for k := range w.input.Instances {
			w.input.Instances[k].Updated = !w.input.Instances[k].Updated
		}
	case 2:
		w.rule(w.n(3), w.n(2))
	case 3:
		w.resize(w.n(12))
	case 4:
		w.input.Limits.Partition = w.n(w.input.Limits.Replicas)
	}
}

// TestComputeConverges carries plans out until there is nothing left to plan.
func TestComputeConverges(t *testing.T) {
	const patience = 60
	stood := 0
	eachCase(t, 4_000, func(r *random) string {
		w := newWorld(r)
		var told []string
		for idle := 0; idle < patience; {
			plan := compute(t, w.input)
			told = append(told, story(plan))
			tale := func() string { return strings.Join(told[max(0, len(told)-20):], "\n") }
			if problem := crosses(w.input, plan) + silent(w.input, plan); problem != "" {
				return problem + "\n" + tale()
			}
			idle++
			if story(plan) != told[max(0, len(told)-2)] {
				idle = 0
			}
			w.disturb(len(told))
			if len(told) > 3000 {
				return "it goes on for ever:\n" + tale()
			}
			w.apply(plan)
			w.tick()
		}
		switch {
		case converged(w.input):
		case slices.ContainsFunc(w.input.Instances, preparing):
			// A hook held it for an update that is no longer to be; the way back is for its lifecycle.
		case w.input.Updates == scale.UpdatesPaused && len(w.input.Instances) == len(w.input.Slots):
			// No surge instance is left behind.
		case !w.broken:
			return fmt.Sprintf("it stands still, and nothing is broken: %+v\n%s", w.input.Limits, strings.Join(told, "\n"))
		default:
			stood++
		}
		return ""
	})
	if stood == 0 && !testing.Short() {
		t.Error("no world was so broken that it stood still, so that is not tried")
	}
}
