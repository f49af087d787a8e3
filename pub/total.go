package pub

import (
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// UnknownReplicas is the total in a status where no replicas are known.
const UnknownReplicas int32 = -1

// Workload is a top workload of guarded pods: the workload of the budget's target, or one that controls selected pods.
type Workload struct {
	UID types.UID
	// Replicas of the spec.
	Replicas int32
	// Unknown means that the workload has no replicas that a controller can read.
	Unknown bool
	// Gone means that the workload does not exist, or terminates.
	Gone bool
}

// Total is the number of replicas that the workloads of a budget want.
type Total struct {
	// Replicas is the sum of those that are known, or UnknownReplicas where none is.
	Replicas int32
	// Unknown is how many workloads have no known replicas.
	Unknown int
	// ScaledDown means that workloads own all pods, and that none of these workloads wants any pod.
	ScaledDown bool
}

// TotalOf sums the replicas of workloads, each once. Bare means that pods without a controller are guarded too; they
// add nothing.
func TotalOf(workloads []Workload, bare bool) Total {
	seen := map[types.UID]bool{}
	total, sum, known := Total{ScaledDown: len(workloads) > 0 && !bare}, int64(0), false
	for _, w := range workloads {
		if w.UID != "" && seen[w.UID] {
			continue
		}
		seen[w.UID] = true
		switch {
		case w.Gone:
			known = true
		case w.Unknown:
			total.Unknown++
			total.ScaledDown = false
		default:
			known = true
			sum += int64(max(w.Replicas, 0))
			total.ScaledDown = total.ScaledDown && w.Replicas <= 0
		}
	}
	total.Replicas = int32(min(sum, math.MaxInt32))
	if !known && total.Unknown > 0 {
		total.Replicas = UnknownReplicas
	}
	return total
}
