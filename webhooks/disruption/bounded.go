package disruption

import "sync"

const (
	// mostSeries of the metric. A user can make workloads without end.
	mostSeries = 2000
	// others is the label of refusals beyond.
	others = "other"
)

// bounded keeps the number of label pairs bounded.
type bounded struct {
	mu   sync.Mutex
	seen map[[2]string]bool
}

// labels returns the pair, or that of the others where there are too many pairs.
func (b *bounded) labels(workload, user string) [2]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	pair := [2]string{workload, user}
	switch {
	case b.seen[pair]:
	case len(b.seen) >= mostSeries:
		return [2]string{others, others}
	default:
		if b.seen == nil {
			b.seen = map[[2]string]bool{}
		}
		b.seen[pair] = true
	}
	return pair
}
