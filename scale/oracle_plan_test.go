package scale_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

func (o oracle) isUpdated(i scale.Instance) bool {
	return i.Updated || o.in.PreparingUpdateIsUpdated && preparing(i)
}

func (o oracle) hooked(i scale.Instance) bool {
	return o.in.Hooks != nil && anyPod(i, func(p *corev1.Pod) bool { return p.Labels["hold"] == "yes" })
}

// plan gives the names of what to restore, delete and update, and what to create.
func (o oracle) plan() string {
	o.in.Instances = slices.DeleteFunc(slices.Clone(o.in.Instances), func(i scale.Instance) bool { return i.Terminating })
	l := o.in.Limits
	if o.in.Updates == scale.UpdatesPaused {
		l.MaxSurge = 0
	}
	plan := scale.Result{}
	if !o.in.UpdateOnly {
		if plan.Restore = o.restore(); len(plan.Restore) == 0 {
			d := o.formula(o.isUpdated, l)
			for i := range d.Create {
				plan.Create = append(plan.Create, scale.Creation{Updated: i >= d.CreateOld})
			}
			if len(plan.Create) == 0 {
				plan.Delete = o.delete(d)
			}
		}
	}
	if len(plan.Restore)+len(plan.Create)+len(plan.Delete) == 0 {
		old, updated := o.count(false, hasLabel), o.count(true, hasLabel)
		d := o.formula(hasLabel, l)
		// Where both sides lack some, or both have too many, the formula takes from one what it needs itself.
		oldDiff := old.Available + old.Unavailable + old.MarkedForDeletion - l.Partition
		newDiff := updated.Available + updated.Unavailable + updated.MarkedForDeletion - (l.Replicas - l.Partition)
		if oldDiff*newDiff > 0 {
			d.Update = 0
		}
		plan.Update = o.update(d)
		plan.Backward = d.Update < 0 && len(plan.Update) > 0
	}
	return story(plan)
}

func (o oracle) formula(isUpdated func(scale.Instance) bool, l scale.Limits) scale.Difference {
	return formula(o.count(false, isUpdated), o.count(true, isUpdated), l)
}

func (o oracle) restore() []scale.Instance {
	if o.in.Hooks != nil && o.in.Hooks.PreDelete.MarkPodNotReady {
		return nil
	}
	d := int(o.in.Limits.Replicas) - len(o.in.Instances)
	var held []scale.Instance
	for _, i := range o.in.Instances {
		if i.MarkedForDeletion || leaving(i) {
			d++
		}
		if leaving(i) && !i.MarkedForDeletion {
			held = append(held, i)
		}
	}
	held = sorted(held, func(a, b scale.Instance) bool {
		return o.before(b, a, "assigned phase ready since restarts created", nil)
	})
	return held[:min(max(d, 0), len(held))]
}

func (o oracle) delete(d scale.Difference) []scale.Instance {
	byName := func(a, b scale.Instance) bool { return a.Name < b.Name }
	var released, broken, fresh, fine []scale.Instance
	planned := false
	for _, i := range o.in.Instances {
		planned = planned || leaving(i) || i.MarkedForDeletion
		switch {
		case leaving(i) && !o.hooked(i):
			released = append(released, i)
		case leaving(i) || !i.MarkedForDeletion:
		case !o.ready(i):
			broken = append(broken, i)
		case !o.available(i):
			fresh = append(fresh, i)
		default:
			fine = append(fine, i)
		}
	}
	out := sorted(released, byName)
	if d.CreateMissing > 0 {
		return out
	}
	out = append(out, sorted(broken, byName)...)
	// The broken ones take away from the available ones, which they do not in the reference.
	budget := int(d.DeleteAvailable) - len(broken)
	chosen := slices.Concat(sorted(fresh, byName), sorted(fine, byName))
	out = append(out, chosen[:min(max(budget, 0), len(chosen))]...)
	if planned || d.Delete == 0 {
		return out
	}
	var old, updated []scale.Instance
	for _, i := range o.in.Instances {
		if o.isUpdated(i) {
			updated = append(updated, i)
		} else {
			old = append(old, i)
		}
	}
	fromOld := min(int(d.DeleteOld), int(d.Delete), len(old))
	fromUpdated := min(int(d.Delete)-fromOld, len(updated))
	old = o.victims(old, updated)
	updated = o.victims(updated, old[fromOld:])
	victims := slices.Concat(old[:fromOld], updated[:fromUpdated])
	budget = int(d.DeleteAvailable)
	for _, i := range victims {
		if o.ready(i) {
			budget--
		}
		if !o.ready(i) || budget >= 0 {
			out = append(out, i)
		}
	}
	return out
}

func inGrace(p *corev1.Pod) bool {
	return p.Annotations[kruise.InPlaceUpdateGraceKey] != ""
}

func (o oracle) update(d scale.Difference) []scale.Instance {
	if d.Update == 0 || o.in.Updates != scale.UpdatesRun {
		return nil
	}
	d.UpdateUnavailable = o.in.Limits.MaxUnavailable + int32(len(o.in.Instances)) - o.in.Limits.Replicas
	var waiting []scale.Instance
	for _, i := range o.in.Instances {
		if i.Updated == (d.Update < 0) && !leaving(i) {
			waiting = append(waiting, i)
		}
	}
	readyLast := func(a, b scale.Instance) bool {
		return o.before(a, b, "assigned phase ready since restarts created", nil)
	}
	waiting = sorted(waiting, readyLast)
	labels := func(i scale.Instance) map[string]string {
		if len(podsOf(i)) == 0 {
			return nil
		}
		return podsOf(i)[0].Labels
	}
	if err := scale.Prioritise(waiting, labels, o.in.Priority); err != nil {
		return nil
	}
	waiting = scale.Scatter(waiting, o.in.Instances, labels, o.in.Scatter)
	front := func(first func(scale.Instance) bool) {
		rest := slices.DeleteFunc(slices.Clone(waiting), first)
		waiting = append(slices.DeleteFunc(waiting, func(i scale.Instance) bool { return !first(i) }), rest...)
	}
	if o.in.UnavailableFirst {
		front(func(i scale.Instance) bool { return !o.available(i) })
	}
	front(func(i scale.Instance) bool { return preparing(i) || anyPod(i, inGrace) })
	return o.walk(waiting[:min(len(waiting), max(int(d.Update), -int(d.Update)))], d)
}

func (o oracle) walk(waiting []scale.Instance, d scale.Difference) []scale.Instance {
	unavailable, moving := 0, 0
	for _, i := range o.in.Instances {
		if !o.available(i) {
			unavailable++
			moving += int(truth(i.Updated == (d.Update >= 0)))
		}
	}
	var taken []scale.Instance
	for _, i := range waiting {
		switch {
		case moving+len(taken) >= int(d.UpdateUnavailable):
			return taken
		case !o.available(i):
		case unavailable < int(d.UpdateUnavailable):
			unavailable++
		default:
			return taken
		}
		taken = append(taken, i)
	}
	return taken
}

// TestComputeAgainstTheOracle compares whole plans.
func TestComputeAgainstTheOracle(t *testing.T) {
	eachCase(t, 20_000, func(r *random) string {
		input := r.input()
		got, want := compute(t, input), oracle{input}.plan()
		got.Notes = nil
		if strings.TrimSpace(story(got)) != strings.TrimSpace(want) {
			return "want " + want + ", got " + story(got)
		}
		return ""
	})
}

// TestComputeOfManyAgainstTheOracle has so many instances that they are no longer sorted by comparing each with others.
func TestComputeOfManyAgainstTheOracle(t *testing.T) {
	deleted, updated := 0, 0
	eachCase(t, 20, func(r *random) string {
		input := r.input()
		input.Instances = slices.DeleteFunc(r.instances("web-", 140+r.Intn(40)), func(i scale.Instance) bool {
			return i.MarkedForDeletion || i.Terminating || leaving(i)
		})
		n := int32(len(input.Instances))
		input.Limits.Replicas, input.Limits.MaxUnavailable = pick(r, n, r.n(n)), n
		input.Limits.Partition = pick(r, 0, r.n(input.Limits.Replicas))
		got, want := compute(t, input), oracle{input}.plan()
		deleted, updated = max(deleted, len(got.Delete)), max(updated, len(got.Update))
		got.Notes = nil
		if strings.TrimSpace(story(got)) != strings.TrimSpace(want) {
			return "want " + want + ", got " + story(got)
		}
		return ""
	})
	if deleted < 50 || updated < 50 {
		t.Errorf("only %d deleted and %d updated at once", deleted, updated)
	}
}
