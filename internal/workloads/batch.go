package workloads

import "encoding/json"

const (
	// mostPods is how many pods a pass builds at most, and mostBytes what they take in memory, by an estimate. leastPods
	// are built of the largest template.
	mostPods  = 512
	mostBytes = 64 << 20
	leastPods = 8
)

// MaxCreations returns how many pods of a workload one pass builds: the next pass goes on. A typing error in a number
// of replicas, or a template as large as an API server stores, must not take the memory of the manager, which holds the
// pods until their creations are answered.
func MaxCreations(creations int, spec any) int {
	if creations <= leastPods {
		return creations
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return leastPods
	}
	return min(creations, mostPods, max(leastPods, mostBytes/(2*len(text))))
}
