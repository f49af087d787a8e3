package podscope

import (
	"reflect"
	"time"
)

const (
	// interval is the least time between two writes of a configuration: API servers compile the conditions again after
	// each. The first one comes at once.
	interval = 500 * time.Millisecond
	// maxPause bounds the pause before entries that another writer keeps changing are written again.
	maxPause = time.Minute
	// lasting is how long a write must be in force for its undoing not to belong to the one before.
	lasting = 30 * time.Second
	// catchUp is the time for the cache to show a write.
	catchUp = 200 * time.Millisecond
)

// pace bounds the writes of one configuration. The zero value is that of a new process.
type pace struct {
	// last is when wanted was written.
	last   time.Time
	wanted []entry
	// pause is that before the same is written again, which doubles while another writer undoes it soon.
	pause time.Duration
}

// undone reports whether the same was written before: another writer has changed it since.
func (p *pace) undone(want []entry) bool {
	return !p.last.IsZero() && reflect.DeepEqual(p.wanted, want)
}

// wait returns how long to wait before the next write.
func (p *pace) wait(want []entry, now time.Time) time.Duration {
	pause := interval
	if p.undone(want) {
		pause = p.pause
	}
	return max(0, p.last.Add(pause).Sub(now))
}

// wrote returns the pace after a write.
func (p *pace) wrote(want []entry, now time.Time) pace {
	next := pace{last: now, wanted: want, pause: interval}
	if now.Sub(p.last) < lasting+p.pause {
		next.pause = p.pause
		if p.undone(want) {
			next.pause = min(2*p.pause, maxPause)
		}
	}
	return next
}
