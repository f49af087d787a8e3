package placement

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// create gives slots to the nodes, as far as the burst and the partition go.
func (p *planner) create() {
	quota := p.quota()
	for _, at := range p.places {
		switch {
		case at.keep != nil:
			p.keep(at)
		case !at.verdict.Run:
		case at.held:
			p.withheld++
		case at.occupied:
			p.result.Slots = append(p.result.Slots, at.name)
		case quota == 0:
			p.waitingPartition++
		case !p.mayCreate():
			p.withheld++
		default:
			quota--
			p.result.Slots = append(p.result.Slots, at.name)
		}
	}
}

// mayCreate counts a creation, unless the pass has enough of them.
func (p *planner) mayCreate() bool {
	if p.creations >= int(p.result.Burst) {
		p.waitingCreations++
		return false
	}
	p.creations++
	return true
}

// quota is how many nodes may get a pod because of the partition; below zero for all.
func (p *planner) quota() int {
	if !p.in.PartitionedScaling || p.result.Partition == 0 || p.in.Updates == scale.UpdatesOnDelete {
		return -1
	}
	updated := 0
	for _, at := range p.places {
		if at.verdict.Run && (at.fresh != nil || at.keep != nil && p.in.IsUpdated(at.keep)) {
			updated++
		}
	}
	return max(int(p.result.Desired-p.result.Partition)-updated, 0)
}

// keep gives the pods of a node their slots.
func (p *planner) keep(at *place) {
	p.result.Slots = append(p.result.Slots, at.name)
	if at.fresh != nil {
		p.result.Slots = append(p.result.Slots, at.name+surgeSuffix)
		p.result.Instances = append(p.result.Instances, Instance{Name: at.name + surgeSuffix, Pod: at.fresh})
	}
	recreate := p.in.InPlace == nil || !p.in.InPlace(at.keep)
	i := Instance{Name: at.name, Pod: at.keep, Recreate: recreate}
	if !p.in.IsUpdated(at.keep) {
		switch {
		case p.result.Surge > 0, // the slot next to it updates the node
			!p.isSelected(at.node),
			!at.verdict.Run && p.result.Partition > 0: // which is a number of eligible nodes
			i.NotNow = true
		case !at.verdict.Run && recreate:
			i.NotNow = true
			p.note(note.Info, NoteStays, at.keep.Name, at.name+" would get no other pod: "+at.verdict.Note("").Text)
		}
	}
	if !at.verdict.Run && !p.isAvailable(at.keep) {
		p.stray++
	}
	if !at.verdict.Run && i.NotNow {
		p.strayOld++
	}
	p.result.Instances = append(p.result.Instances, i)
}

// due returns the nodes whose pods may be updated, in the order of their updates: the last names first, as far as the
// partition goes.
func (p *planner) due() []*place {
	var due []*place
	done := 0
	for _, at := range slices.Backward(p.places) {
		switch {
		case !at.verdict.Run:
		case at.keep == nil || at.fresh != nil || !isStaying(at.keep) || p.in.IsUpdated(at.keep):
			done++
		case p.isSelected(at.node):
			due = append(due, at)
		}
	}
	return due[:min(max(int(p.result.Desired-p.result.Partition)-done, 0), len(due))]
}

// update opens slots for second pods.
func (p *planner) update() {
	if p.result.Surge == 0 || p.in.Updates != scale.UpdatesRun {
		return
	}
	due, open, waiting := p.due(), int32(0), 0
	for _, at := range p.places {
		if len(at.active) > 1 { // also where one of them is surplus
			open++
		}
	}
	slices.SortStableFunc(due, func(a, b *place) int { // those that serve come last
		return boolean(p.isAvailable(a.keep)) - boolean(p.isAvailable(b.keep))
	})
	for _, at := range due {
		if len(at.active) > 1 {
			continue
		}
		available := p.isAvailable(at.keep)
		if available && open >= p.result.Surge {
			waiting++
			continue
		}
		if !p.mayCreate() {
			continue
		}
		open += int32(boolean(available))
		p.result.Slots = append(p.result.Slots, at.name+surgeSuffix)
	}
	p.noteCount(NoteSurge, waiting, "to be updated until new pods beside old ones are available")
	slices.Sort(p.result.Slots)
}

// budget adjusts the budget of the slots, which counts each slot without an available pod.
func (p *planner) budget() {
	r := &p.result
	allowance := p.stray - p.withheld
	if p.in.Loose {
		allowance += p.uncounted()
	}
	if r.MaxUnavailable > 0 {
		r.MaxUnavailable = max(r.MaxUnavailable+allowance, 0)
	}
	// Nodes that are not eligible have slots, too, which are none of those that the partition keeps.
	r.Partition = min(r.Partition+p.strayOld, int32(len(r.Slots)))
}

// uncounted is how many pods that are not available the reference does not count: old ones that an update replaces at
// once, or that the partition or the selector keeps.
func (p *planner) uncounted() int32 {
	n := int32(0)
	for _, at := range p.places {
		if at.verdict.Run && at.keep != nil && isStaying(at.keep) && !p.in.IsUpdated(at.keep) && !p.isAvailable(at.keep) {
			n++
		}
	}
	return n
}

func (p *planner) conclude() {
	r := &p.result
	slices.SortFunc(r.Instances, func(a, b Instance) int { return strings.Compare(a.Name, b.Name) })
	kept := 0
	for i := range r.Instances {
		if r.Instances[i].NotNow && r.Surge == 0 {
			kept++
		}
	}
	if p.in.Selector != nil && p.in.Updates == scale.UpdatesRun {
		p.noteCount(NoteSelector, kept, "until rollingUpdate.selector matches their node")
	}
	p.noteCount(NoteBurst, p.waitingCreations, "to be created by the next pass")
	p.noteCount(NoteBurst, p.waitingDeletions, "to be deleted by the next pass")
	p.noteCount(NotePartition, p.waitingPartition, "for the partition to be lowered, to get a pod")
	if p.waitingCreations+p.waitingDeletions > 0 {
		p.wake(retryBurst)
	}
	r.Backoff = p.in.Backoff.next(r.Failed, p.in.Now)
}

// retryBurst is when to look again where the burst kept something. An event of what the pass writes comes before.
const retryBurst = time.Second

func (p *planner) wake(after time.Duration) {
	if after > 0 && (p.result.RequeueAfter == 0 || after < p.result.RequeueAfter) {
		p.result.RequeueAfter = after
	}
}

func (p *planner) isAvailable(pod *corev1.Pod) bool {
	available, _ := scale.Available(pod, p.in.MinReadySeconds, p.in.Now)
	return available
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// amount resolves a bound, and is what holds without it where it cannot be parsed.
func amount(v *intstr.IntOrString, without, total int32, r scale.Rounding) int32 {
	n, err := scale.AmountOr(v, without, total, r)
	if err != nil {
		return without
	}
	return max(n, 0)
}
