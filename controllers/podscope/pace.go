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
	// last is when wanted was written, over a version of the configuration.
	last   time.Time
	wanted []entry
	over   string
	// pause is that before the same is written again, which doubles while another writer undoes it soon.
	pause time.Duration
}

// undone reports whether the same was written before: another writer has changed it since.
func (p *pace) undone(want []entry) bool {
	return !p.last.IsZero() && reflect.DeepEqual(p.wanted, want)
}

// wait returns how long to wait before the next write over a version.
func (p *pace) wait(version string, want []entry, now time.Time) time.Duration {
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero():
		return 0
	case version == p.over && since < interval:
		return catchUp // the cache does not show the last write yet
	case p.undone(want):
		return max(0, p.pause-since)
	}
	return max(0, interval-since)
}

// wrote returns the pace after a write.
func (p *pace) wrote(version string, want []entry, now time.Time) pace {
	next := pace{last: now, wanted: want, over: version, pause: interval}
	if !p.last.IsZero() && now.Sub(p.last) < lasting+p.pause {
		next.pause = p.pause
		if p.undone(want) {
			next.pause = min(2*p.pause, maxPause)
		}
	}
	return next
}
