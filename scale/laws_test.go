package scale_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

func copied(input scale.Input) scale.Input {
	input.Instances = slices.Clone(input.Instances)
	for i := range input.Instances {
		pods := slices.Clone(input.Instances[i].Pods)
		for j, p := range pods {
			pods[j] = p.DeepCopy()
		}
		input.Instances[i].Pods = pods
	}
	input.Slots = slices.Clone(input.Slots)
	return input
}

// TestComputeLaws holds for instances that are alike and for slots.
func TestComputeLaws(t *testing.T) {
	eachCase(t, 20_000, func(r *random) string {
		input := r.input()
		if r.once(2) {
			input = r.slots(input)
		}
		before := copied(input)
		plan := compute(t, input)
		if !reflect.DeepEqual(before, input) {
			return "the input has changed"
		}
		r.Shuffle(len(input.Instances), reflect.Swapper(input.Instances))
		if again := compute(t, input); !reflect.DeepEqual(plan, again) {
			return fmt.Sprintf("shuffled, it is another plan:\n%+v\n%+v", plan, again)
		}
		if problem := crosses(before, plan); problem != "" {
			return fmt.Sprintf("%s: %s", story(plan), problem)
		}
		return silent(before, plan)
	})
}

// TestComputeGroups has each pod twice in its instance: nothing but the number of pods differs.
func TestComputeGroups(t *testing.T) {
	eachCase(t, 5_000, func(r *random) string {
		input := r.input()
		for i := range input.Instances {
			input.Instances[i].Pods = podsOf(input.Instances[i])[:min(1, len(podsOf(input.Instances[i])))]
			input.Instances[i].Size = r.Intn(2)
		}
		want := compute(t, input)
		for i := range input.Instances {
			pods := input.Instances[i].Pods
			input.Instances[i].Size, input.Instances[i].Pods = 2, slices.Concat(pods, []*corev1.Pod{nil}, pods)
		}
		got := compute(t, input)
		if story(want) != story(got) || !reflect.DeepEqual(want.Notes, got.Notes) {
			return fmt.Sprintf("single: %s, groups: %s", story(want), story(got))
		}
		return ""
	})
}

// TestComputeAbsurd has what an API server stores all the same: nothing panics, and the plan makes sense.
func TestComputeAbsurd(t *testing.T) {
	times := []metav1.Time{{}, metav1.Unix(math.MaxInt64, 0), metav1.Unix(math.MinInt64, 0), metav1.NewTime(now())}
	eachCase(t, 5_000, func(r *random) string {
		input := r.input()
		if r.once(2) {
			input = r.slots(input)
		}
		input.Now, input.Updates = pick(r, times...).Time, pick(r, input.Updates, "Never")
		for _, n := range []*int32{
			&input.MinReadySeconds, &input.Limits.Replicas, &input.Limits.Partition, &input.Limits.MaxUnavailable,
			&input.Limits.MaxSurge, input.Limits.MaxUnavailableScaling,
		} {
			if n != nil && r.once(3) {
				*n = pick[int32](r, math.MaxInt32, math.MinInt32, -1, 0)
			}
		}
		for i := range input.Instances {
			input.Instances[i].Outdated, input.Instances[i].Impaired = r.once(8), r.once(8)
			for _, p := range podsOf(input.Instances[i]) {
				p.CreationTimestamp, p.Status.Conditions[0].LastTransitionTime = pick(r, times...), pick(r, times...)
				if r.once(6) {
					*p = corev1.Pod{Status: corev1.PodStatus{Phase: pick(r, "", corev1.PodRunning, "Gone")}}
				}
			}
		}
		input = sensible(input)
		plan := compute(t, input)
		touched := map[string]bool{}
		for _, i := range slices.Concat(plan.Restore, plan.Delete, plan.Update) {
			if touched[i.Name] || i.Terminating && !i.Finished {
				return i.Name + " is touched twice, or too late"
			}
			touched[i.Name] = true
		}
		created, updated, gone := len(plan.Create), len(plan.Update), len(plan.Delete)+len(plan.Restore)
		if created > 1<<16 || created > 0 && gone > 0 || updated > 0 && created+gone > 0 || plan.RequeueAfter < 0 {
			return fmt.Sprintf("%s makes no sense", story(plan))
		}
		if again := compute(t, input); story(plan) != story(again) {
			return fmt.Sprintf("two plans of the same: %s, %s", story(plan), story(again))
		}
		return ""
	})
}

// silent reports whether there is something to wait for that no note tells.
func silent(input scale.Input, plan scale.Result) string {
	planned := len(plan.Restore) + len(plan.Create) + len(plan.Delete) + len(plan.Update)
	notes, kept := slices.Clone(plan.Notes), ""
	if i := slices.IndexFunc(notes, isPartition); i >= 0 {
		kept = notes[i].Text
		notes = slices.Delete(notes, i, i+1)
	}
	want := keptOf(input)
	if len(plan.Restore)+len(plan.Create)+len(plan.Delete) > 0 {
		want = "" // that comes first
	}
	if !strings.HasPrefix(kept, want) || (kept == "") != (want == "") || slices.ContainsFunc(notes, isPartition) {
		return fmt.Sprintf("the partition keeps %q, and the plan says %q", want, kept)
	}
	switch {
	case planned > 0 || len(notes) > 0 || input.UpdateOnly || input.NoCreate:
	case plan.RequeueAfter > 0:
		return "it waits for time, and does not say so"
	case !converged(input):
		return "it waits, and does not say for what"
	}
	if converged(input) &&
		(planned > 0 || len(notes) > 0 || plan.RequeueAfter > 0 || plan.Difference != scale.Difference{}) {
		return fmt.Sprintf("converged, and there is something to do: %+v", plan)
	}
	return ""
}

func isPartition(n note.Note) bool { return n.Code == scale.NotePartition }

// keptOf is what a plan has to say first of the old instances that are to stay; nothing where there is none.
func keptOf(input scale.Input) string {
	n := int32(0)
	for _, i := range input.Instances {
		at := slices.Index(input.Slots, i.Name)
		ordered := input.Slots != nil && input.Priority == nil
		if !i.Updated && !i.MarkedForDeletion && !leaving(i) && !i.Terminating && (input.Slots == nil || at >= 0) &&
			(!ordered || at < int(input.Limits.Partition)) {
			n++
		}
	}
	switch n = min(n, input.Limits.Partition); {
	case n <= 0:
		return ""
	case n == 1:
		return "1 instance waits "
	}
	return fmt.Sprintf("%d instances wait ", n)
}

// converged says that nothing is left to do, with updates and scaling on.
func converged(input scale.Input) bool {
	o, old, updated := oracle{input}, int32(0), int32(0)
	position := map[string]int{}
	for i, name := range input.Slots {
		position[name] = i
	}
	for _, i := range input.Instances {
		at, wanted := position[i.Name]
		switch {
		case input.Slots == nil && i.Terminating:
		case i.MarkedForDeletion || !o.available(i) || input.Slots != nil && !wanted:
			return false
		case i.Updated:
			updated++
		case input.Slots != nil && input.Priority == nil && at >= int(input.Limits.Partition):
			return false
		default:
			old++
		}
	}
	if input.Slots != nil {
		return old+updated == int32(len(input.Slots)) && old <= input.Limits.Partition
	}
	keep := min(input.Limits.Partition, input.Limits.Replicas)
	return old+updated == input.Limits.Replicas && (old == keep || old < keep && input.Limits.NoRollback)
}

// crosses says which bound the plan crosses, or makes worse where it is crossed already.
func crosses(input scale.Input, plan scale.Result) string {
	if len(plan.Create) > 0 && len(plan.Delete) > 0 {
		return "it creates and deletes"
	}
	if len(plan.Update) > 0 && len(plan.Restore)+len(plan.Create)+len(plan.Delete) > 0 {
		return "it updates, and changes the number of instances"
	}
	touched := map[string]bool{}
	for _, i := range slices.Concat(plan.Restore, plan.Delete, plan.Update) {
		if touched[i.Name] || i.Terminating && (!i.Finished || !input.InOrder) {
			return i.Name + " is touched twice, or too late"
		}
		touched[i.Name] = true
	}
	if input.Slots != nil {
		return crossesSlots(input, plan)
	}
	return crossesCount(input, plan)
}

func hasLabel(i scale.Instance) bool { return i.Updated }

func crossesCount(input scale.Input, plan scale.Result) string {
	o, l := oracle{input}, input.Limits
	sides := [2]scale.Count{o.count(false, hasLabel), o.count(true, hasLabel)}
	staying := func(c scale.Count) int32 { return c.MarkedForDeletion + c.Unavailable + c.Available }
	old, updated := staying(sides[0]), staying(sides[1])
	gone := sides[0].PreparingDelete + sides[1].PreparingDelete
	unavailable := gone + sides[0].Unavailable + sides[1].Unavailable
	staysAll := old + updated
	available, surplus := int32(0), staysAll-l.Replicas
	for _, i := range input.Instances {
		available += int32(truth(o.available(i)))
	}
	least := min(available, l.Replicas-l.MaxUnavailable)
	for _, i := range slices.Concat(plan.Delete, plan.Update) {
		available -= int32(truth(o.available(i)))
	}
	for _, i := range plan.Delete {
		if !leaving(i) && !i.MarkedForDeletion {
			if surplus--; surplus < 0 {
				return "it deletes more than there are too many"
			}
		}
	}
	counted := staysAll + gone
	if l.ExcludePreparingDelete {
		counted = staysAll
	}
	n, moved := int32(len(plan.Create)), int32(len(plan.Update))
	switch {
	case available < least:
		return fmt.Sprintf("%d are available, %d were to be", available, least)
	case n > 0 && counted+n > l.Replicas+l.MaxSurge:
		return "it crosses the surge"
	case n > 0 && unavailable+n > scalingOf(l):
		return "it creates more than may be unavailable"
	case !plan.Backward && moved > 0 && old-moved < l.Partition:
		return "it crosses the partition"
	case plan.Backward && moved > 0 && updated-moved < l.Replicas-l.Partition:
		return "it crosses the partition backwards"
	}
	return ""
}
