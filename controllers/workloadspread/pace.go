package workloadspread

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

const (
	// shortest is how long the first event of a pod waits, for those that come with it: a workload deletes several pods at once.
	shortest = 30 * time.Millisecond
	// growth of the pause while events follow each other.
	growth = 6
	// few pods that are being created are no storm.
	few = 10
	// together is the longest that events of pods are gathered, so that a thousand pods that are created at once cost few writes.
	together = time.Second
)

// pacer says how long the events of pods are gathered before a pass. The zero value is ready. Safe for concurrent use.
type pacer struct {
	mu  sync.Mutex
	all map[client.ObjectKey]pause
}

// pause is the last one of a WorkloadSpread.
type pause struct {
	length time.Duration
	until  time.Time
}

// delay returns how long an event waits. Pauses begin short, and grow to a second while events follow each other, or at once where admission has
// recorded many pods that are being created.
func (p *pacer) delay(of client.ObjectKey, creating int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.all[of]
	left := last.until.Sub(now)
	if left > 0 && left <= together {
		return left
	}
	next := pause{length: shortest}
	switch {
	case creating > few:
		next.length = together
	case -left < together && left <= 0:
		next.length = min(max(growth*last.length, shortest), together)
	}
	next.until = now.Add(next.length)
	if p.all == nil {
		p.all = map[client.ObjectKey]pause{}
	}
	p.all[of] = next
	return next.length
}

// creatingOf returns how many pods admission has recorded that are not observed yet.
func creatingOf(ws *subset.Spread) int {
	n := 0
	if ws != nil {
		for _, entries := range ws.Status.VersionedSubsetStatuses {
			for i := range entries {
				n += len(entries[i].CreatingPods)
			}
		}
	}
	return n
}

// forget frees what is kept of a WorkloadSpread.
func (p *pacer) forget(of client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, of)
}
