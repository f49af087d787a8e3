package ordinals

import (
	"iter"
	"math"
)

// end is the largest ordinal.
const end = math.MaxInt32

// Window is the ordinals that a workload wants: from Start upwards, as many as Replicas, those in Reserved left out.
type Window struct {
	// Start is the first ordinal, unless it is reserved. A negative start is 0.
	Start int32
	// Replicas is how many ordinals there are. A negative number is 0.
	Replicas int32
	// Reserved ordinals belong to no pod.
	Reserved Set
}

// All returns the ordinals from the first to the last.
func (w Window) All() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		left, next := int64(w.Replicas), w.start()
		for i := w.Reserved.after(next - 1); ; i++ {
			if i > 0 {
				next = max(next, w.Reserved.intervals[i-1].last+1)
			}
			stop := int64(end) + 1
			if i < len(w.Reserved.intervals) {
				stop = w.Reserved.intervals[i].first
			}
			for ; next < stop && left > 0; next, left = next+1, left-1 {
				if !yield(int32(next)) {
					return
				}
			}
			if left <= 0 || i >= len(w.Reserved.intervals) {
				return
			}
		}
	}
}

// Contains reports whether the workload wants an ordinal.
func (w Window) Contains(ordinal int32) bool {
	_, ok := w.Rank(ordinal)
	return ok
}

// Rank returns how many ordinals of the window are below an ordinal, and reports whether the window contains it. The
// rank of an ordinal beyond the window is the number of its ordinals, that of one before it is 0.
func (w Window) Rank(ordinal int32) (rank int32, contained bool) {
	o, start, replicas := int64(ordinal), w.start(), max(0, int64(w.Replicas))
	if o < start {
		return 0, false
	}
	free := o - start - (w.Reserved.below(o) - w.Reserved.below(start))
	if free >= replicas {
		return int32(min(replicas, w.size())), false
	}
	return int32(free), !w.Reserved.Contains(ordinal)
}

// size is how many ordinals there are: fewer than Replicas only where the ordinals end.
func (w Window) size() int64 {
	left := end + 1 - w.start() - (w.Reserved.below(end+1) - w.Reserved.below(w.start()))
	return min(max(0, int64(w.Replicas)), left)
}

func (w Window) start() int64 { return max(0, int64(w.Start)) }
