package pod

import (
	"sync"
	"time"

	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// storing is how long a set may take from its admission until it is stored.
	storing = 2 * time.Second
	// mostMarks are kept: there are few entries at a time.
	mostMarks = 1000
)

// marks are those of provisional entries whose sets were not stored in that state. A set that is not stored some time
// after its entry is used first was rejected after its admission, or nothing but its entry exists: it is not read again
// for each pod.
type marks struct {
	mu  sync.Mutex
	all map[scope.Mark]mark
}

type mark struct {
	since time.Time
	over  bool
}

// over reports that the set will not be stored in the state of the mark.
func (k *marks) over(m scope.Mark, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	have, known := k.all[m]
	if !known {
		if k.all == nil || len(k.all) >= mostMarks {
			k.all = map[scope.Mark]mark{} // entries come and go
		}
		k.all[m] = mark{since: now}
	}
	return have.over
}

// missed records that the set was read, and was not in the state of the mark.
func (k *marks) missed(m scope.Mark, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, known := k.all[m]; known && now.Sub(have.since) >= storing {
		have.over = true
		k.all[m] = have
	}
}
