package pub

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

const (
	// disruptedFor is how long the record of a deletion or an eviction holds.
	disruptedFor = 20 * time.Second
	// updatedFor is how long the record of an update or a resize holds.
	updatedFor = 10 * time.Second
	// unknownFor is how long a record holds of a pod that is not counted: the pod is gone, or newer than the counts.
	unknownFor = 5 * time.Second
	// maxSkew bounds how far the clock of a replica may be ahead. A record that is further ahead would hold for too long.
	maxSkew = 5 * time.Minute
)

// Input is what the status of a budget is computed from.
type Input struct {
	// Budget with its stored status.
	Budget Budget
	// Counts of the guarded pods. Nil counts no pods.
	Counts *Counts
	// Total of the workloads.
	Total Total
	Now   time.Time
}

// Result is the status of a budget.
type Result struct {
	Status Status
	// Changed reports whether the stored status is another one.
	Changed bool
	// RequeueAfter is when the next record ends. Zero is never.
	RequeueAfter time.Duration
	// NotDeleted are the pods that still exist after the time in which their deletion was expected, sorted.
	NotDeleted []string
	// Notes explain what keeps the budget from working.
	Notes []note.Note
}

// Recount computes the status of a budget.
func Recount(in Input) Result {
	b, counts := in.Budget, in.Counts
	total, notes := b.total(in.Total)
	if b.Groups != nil && total > 0 {
		total = (total-1)/b.Groups.GroupSize + 1
	}
	if b.Target != nil && in.Total.Replicas == 0 {
		counts = nil // a workload that wants no pod, or is gone, has none
	}
	desired, more := b.Desired(total)
	notes = append(notes, more...)
	if counts.Active() == 0 {
		notes = append(notes, newNote(NoteNoPods, b.Name, "the budget guards no pod"))
	}
	r := recount{counts: counts, now: in.Now}
	disrupted := r.records(b.Status.DisruptedPods, disruptedFor, func(name string, _ int64, late bool) bool {
		if late {
			r.result.NotDeleted = append(r.result.NotDeleted, name)
		}
		return !late
	})
	updated := r.records(b.Status.UnavailablePods, updatedFor, func(name string, at int64, late bool) bool {
		o, _ := counts.find(name)
		return !late && !o.updatedSince(at)
	})
	current := r.available(disrupted, updated)
	var broken []string
	if b.Groups != nil {
		current, broken = r.groups(b.Groups.GroupSize, disrupted, updated)
	}
	r.result.Status = Status{
		ObservedGeneration: b.Generation,
		DisruptedPods:      disrupted,
		UnavailablePods:    updated,
		UnavailableAllowed: max(0, current-desired),
		CurrentAvailable:   current,
		DesiredAvailable:   desired,
		TotalReplicas:      total,

		UnavailablePodGroups: broken,
	}
	r.result.Changed = !apiequality.Semantic.DeepEqual(r.result.Status, b.Status)
	notes = append(notes, b.exhausted(&r.result.Status)...)
	slices.Sort(r.result.NotDeleted)
	for _, name := range r.result.NotDeleted {
		notes = append(notes, newNote(NoteNotDeleted, name,
			fmt.Sprintf("Pod was expected by PUB %s/%s to be deleted but it wasn't", b.Namespace, b.Name)))
	}
	r.result.Notes = notes
	return r.result
}

// recount filters the records of one status.
type recount struct {
	counts *Counts
	now    time.Time
	result Result
}

// records are those that stay. Those of pods that have finished or are terminating end at once. Keep decides about the
// other counted pods, by the time of the record in seconds and by whether the record is too old.
func (r *recount) records(
	stored map[string]metav1.Time, holds time.Duration, keep func(name string, at int64, late bool) bool,
) map[string]metav1.Time {
	kept := map[string]metav1.Time{}
	for name, at := range stored {
		if at.After(r.now.Add(maxSkew)) {
			continue
		}
		ends := at.Add(holds)
		if o, counted := r.counts.find(name); counted {
			if !o.active || !keep(name, at.Unix(), r.now.After(ends)) {
				continue
			}
		} else if ends = at.Add(unknownFor); r.counts == nil || r.now.After(ends) {
			continue
		}
		kept[name] = at
		after := ends.Sub(r.now) + time.Millisecond // after the last moment in which the record holds
		if r.result.RequeueAfter == 0 || after < r.result.RequeueAfter {
			r.result.RequeueAfter = after
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// available counts the available pods that no record counts as unavailable.
func (r *recount) available(records ...map[string]metav1.Time) int32 {
	if r.counts == nil {
		return 0
	}
	n, seen := r.counts.available, map[string]bool{}
	for _, m := range records {
		for name := range maps.Keys(m) {
			if o, _ := r.counts.find(name); !seen[name] && o.available {
				n--
			}
			seen[name] = true
		}
	}
	return int32(min(n, math.MaxInt32))
}

// maxGroups bounds the groups in a status. A group beyond them costs although it is unavailable already.
const maxGroups = 1000

// groups counts the groups that have all of their pods available, by pods that no record counts as unavailable, and
// returns the others. A group whose pods are all gone is neither.
func (r *recount) groups(size int32, records ...map[string]metav1.Time) (available int32, broken []string) {
	if r.counts == nil {
		return 0, nil
	}
	members := map[string]int32{}
	for name, o := range r.counts.pods {
		if !o.active {
			continue
		}
		members[o.group] += 0
		recorded := slices.ContainsFunc(records, func(m map[string]metav1.Time) bool { _, ok := m[name]; return ok })
		if o.available && !recorded {
			members[o.group]++
		}
	}
	for _, group := range slices.Sorted(maps.Keys(members)) {
		switch n := members[group]; {
		case n >= size, n == 1 && strings.HasPrefix(group, "pod/"):
			available++
		case len(broken) < maxGroups:
			broken = append(broken, group)
		}
	}
	return available, broken
}

// updatedSince reports whether a pod was observed available with an update that is not older than a record: the
// annotations of the update are there, and a container has started since. One second is the resolution of both.
func (o observation) updatedSince(at int64) bool {
	return o.available && o.updated >= at && o.started > at
}

// total is the number of replicas that the budget is taken of.
func (b Budget) total(of Total) (int32, []note.Note) {
	switch {
	case b.TotalReplicas != nil && of.ScaledDown:
		text := fmt.Sprintf("protectTotalReplicas %d is ignored, because the workloads are scaled down to 0 or deleted",
			*b.TotalReplicas)
		return 0, []note.Note{newNote(NoteScaledDown, b.Name, text)}
	case b.TotalReplicas != nil:
		return *b.TotalReplicas, nil
	case of.Unknown > 0 && (b.MaxUnavailable != nil || isPercent(b.MinAvailable)):
		text := "the replicas of a workload are unknown, so that its pods are not protected: " +
			"set spec.protectTotalReplicas, or minAvailable as a number"
		return of.Replicas, []note.Note{newNote(NoteUnknownReplicas, b.Name, text)}
	}
	return of.Replicas, nil
}

func isPercent(v *intstr.IntOrString) bool { return v != nil && v.Type == intstr.String }

// Desired returns how many pods of a total must stay available. Percentages are rounded up.
func (b Budget) Desired(total int32) (int32, []note.Note) {
	var desired int64
	total = max(total, 0) // of unknown replicas nothing is taken
	switch {
	case b.MaxUnavailable != nil:
		desired = int64(total) - int64(amountOf(*b.MaxUnavailable, total))
	case b.MinAvailable != nil:
		desired = int64(amountOf(*b.MinAvailable, total))
	default:
		return 0, []note.Note{
			newNote(NoteNoAmount, b.Name,
				"the budget has neither a valid maxUnavailable nor a valid minAvailable, and protects nothing"),
		}
	}
	return int32(min(max(desired, 0), math.MaxInt32)), nil
}

// exhausted notes a budget that has no room, and gets none when all replicas are available.
func (b Budget) exhausted(s *Status) []note.Note {
	if s.DesiredAvailable == 0 || s.UnavailableAllowed > 0 || s.TotalReplicas < 0 || s.DesiredAvailable < s.TotalReplicas {
		return nil
	}
	text := fmt.Sprintf("%d of %d replicas must stay available, so that every disruption is refused",
		s.DesiredAvailable, s.TotalReplicas)
	return []note.Note{newNote(NoteNoneAllowed, b.Name, text)}
}

// amountOf is a number, or a percentage of total. Read leaves out what is neither.
func amountOf(v intstr.IntOrString, total int32) int32 {
	n, err := scale.Amount(v, total, scale.RoundUp)
	if err != nil {
		return 0
	}
	return n
}

// amountFault is why an amount is neither a number of pods nor a percentage; empty where it is one.
func amountFault(v intstr.IntOrString) string {
	switch n, err := scale.Amount(v, 100, scale.RoundUp); {
	case err != nil:
		return "must be a number or a percentage: " + brief(v.StrVal)
	case n < 0:
		return "must not be negative"
	}
	return ""
}
