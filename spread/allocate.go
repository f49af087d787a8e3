package spread

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/note"
)

// Mode says what becomes of replicas that find no node.
type Mode string

const (
	// Fixed divides by shares or bounds, and looks at no pod. It is the default.
	Fixed Mode = ""
	// Adaptive gives a subset that is unschedulable no more replicas than are ready, and later subsets the rest.
	Adaptive Mode = "Adaptive"
	// Reserving leaves a subset that is unschedulable its replicas, and gives later subsets substitutes.
	Reserving Mode = "Reserving"
)

// Subset is one subset of an Input, as a reconciler observes the subset.
type Subset struct {
	Name string
	// Replicas is the share of the subset. Modes other than Fixed ignore it.
	Replicas *intstr.IntOrString
	// MinReplicas and MaxReplicas are its bounds. A share in any subset excludes the bounds of all.
	MinReplicas, MaxReplicas *intstr.IntOrString

	// Exists reports whether the subset has a workload.
	Exists bool
	// Current is the number of replicas that the workload is to have now.
	Current int32
	// Ready counts its ready pods.
	Ready int32
	// Reserved counts its reserved pods.
	Reserved int32
	// Unschedulable reports that pods of the subset find no node, see Schedule.
	Unschedulable bool
	// Marked reports that the subset was unschedulable before, so that new pods must prove themselves. Only for Reserving.
	Marked bool
}

// Input is what Allocate divides.
type Input struct {
	// Replicas is the wanted number in all subsets together; nil for the sum of the shares.
	Replicas *int32
	Mode     Mode
	// Subsets in the order of their priority.
	Subsets []Subset
}

// Allocation is a division of replicas among subsets.
type Allocation struct {
	// Replicas of each subset, in the order of the input.
	Replicas []int32
	// Unallocated are the replicas for which no subset has room.
	Unallocated int32
	// Notes say which part of the specification cannot be met.
	Notes []note.Note
}

// Codes of notes.
const (
	// NoteInvalidAmount is a number or a percentage that cannot be read. It counts as absent.
	NoteInvalidAmount = "InvalidAmount"
	// NoteBoundsCrossed is a minimum above its maximum. The maximum counts.
	NoteBoundsCrossed = "BoundsCrossed"
	// NoteReplicasMismatch are shares that are more than all replicas, or less where each subset has one. With too many,
	// the first subsets get theirs; with too few, the rest is divided evenly among all subsets.
	NoteReplicasMismatch = "ReplicasMismatch"
	// NoteNoRoom are replicas above the sum of all maxima. They are not allocated.
	NoteNoRoom = "NoRoom"
)

// Allocate divides the replicas of a workload among its subsets.
func Allocate(in Input) Allocation {
	p := &division{in: in, result: Allocation{Replicas: make([]int32, len(in.Subsets))}}
	if in.Mode == Fixed && !p.bounded() {
		p.byShares()
		return p.result
	}
	p.byBounds()
	return p.result
}

// division is an allocation in the making.
type division struct {
	in     Input
	result Allocation
}

// bounded reports whether a subset has a bound.
func (p *division) bounded() bool {
	for i := range p.in.Subsets {
		if s := &p.in.Subsets[i]; s.MinReplicas != nil || s.MaxReplicas != nil {
			return true
		}
	}
	return false
}

func (p *division) blocked(code, subset, format string, args ...any) {
	p.result.Notes = append(p.result.Notes, note.Note{
		Level: note.Blocked, Code: code, Object: subset, Text: fmt.Sprintf(format, args...),
	})
}

// total is the wanted number of replicas.
func (p *division) total() int64 {
	if p.in.Replicas == nil {
		return 0
	}
	return int64(max(*p.in.Replicas, 0))
}

// read returns an amount; nil where there is none, or none that counts.
func (p *division) read(subset, what string, v *intstr.IntOrString) *amount {
	if v == nil {
		return nil
	}
	a, err := parse(v)
	switch {
	case err != nil:
		p.blocked(NoteInvalidAmount, subset, "%s %v", what, err)
		return nil
	case a.isPercent && p.in.Replicas == nil:
		p.blocked(NoteInvalidAmount, subset, "%s is a percentage, and the number of all replicas is unknown", what)
		return nil
	}
	return &a
}
