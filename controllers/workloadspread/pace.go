package workloadspread

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

const (
	// shortest is how long the first event of a pod waits, for those that come with it: a workload deletes several pods at
	// once.
	shortest = 30 * time.Millisecond
	// growth of the pause while events follow each other.
	growth = 6
	// few pods that are being created are no storm.
	few = 10
	// settling is how long the report of a target waits for the events of its last pods, which may come behind it.
	settling = 20 * time.Millisecond
	// together is how long events of pods are gathered at most, so that a thousand pods that are created at once cost few
	// writes.
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
	// reported is the generation in which the target has written a status since the last pass that was early, zero for
	// none, and settled the one in which a pause has ended early.
	reported, settled int64
}

// delay returns how long an event waits. Pauses begin short, and grow to a second while events follow each other, or at
// once where admission has recorded many pods that are being created.
func (p *pacer) delay(of client.ObjectKey, creating int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.all[of]
	left := last.until.Sub(now)
	if left > 0 && left <= together {
		return left
	}
	next := pause{length: shortest, reported: last.reported, settled: last.settled}
	switch {
	case creating > few:
		next.length = together
	case -left < together && left <= 0:
		next.length = min(max(growth*last.length, shortest), together)
	}
	next.until = now.Add(next.length)
	p.put(of, next)
	if next.reported != 0 {
		return settling
	}
	return next.length
}

func (p *pacer) put(of client.ObjectKey, last pause) {
	if p.all == nil {
		p.all = map[client.ObjectKey]pause{}
	}
	p.all[of] = last
}

// reported records that a target has written its status, and reports whether a pause is left, which may end early. A
// pause ends early once in a generation of the target, so that no storm costs more writes.
func (p *pacer) reported(of client.ObjectKey, generation int64, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.all[of]
	if last.settled == generation {
		return false
	}
	last.reported = generation
	p.put(of, last)
	left := last.until.Sub(now)
	return left > settling && left <= together
}

// early returns what is left of a pause before a pass that follows a report, zero where the pass is due. The pause of a
// target that has settled is over.
func (p *pacer) early(of client.ObjectKey, settled bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.all[of]
	if last.reported == 0 {
		return 0
	}
	left := last.until.Sub(now)
	if left <= 0 || left > together {
		left = 0
	} else if settled {
		last.settled, last.until, left = last.reported, now, 0
	}
	last.reported = 0
	p.all[of] = last
	return left
}

// end ends the pause of a WorkloadSpread that is reconciled at once.
func (p *pacer) end(of client.ObjectKey, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.all[of]; ok && last.until.After(now) {
		last.until, last.reported = now, 0
		p.all[of] = last
	}
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
