package podscope

import "time"

const (
	// between is the least time between two writes: API servers compile the conditions again after each.
	between = 50 * time.Millisecond
	// betweenSweeps is the same for removals, which are not urgent.
	betweenSweeps = 500 * time.Millisecond
	// firstPause is the pause before an entry that another writer has removed is written again. The next pauses double.
	firstPause = time.Second
)

// pace limits the writes.
type pace struct {
	least, most time.Duration

	last   time.Time
	wanted string
	// undoings is how often in a row another writer has undone the write.
	undoings int
}

// undone reports whether the same was written before, and undone by another writer.
func (p *pace) undone(wanted string) bool { return !p.last.IsZero() && p.wanted == wanted }

// wait returns how long to wait before the next write.
func (p *pace) wait(wanted string, now time.Time) time.Duration {
	if p.last.IsZero() {
		return 0
	}
	pause := p.least
	if p.undone(wanted) {
		pause = p.pause()
	}
	return p.last.Add(pause).Sub(now)
}

// pause returns the pause before the same is written again.
func (p *pace) pause() time.Duration {
	pause := firstPause
	for i := 0; i < p.undoings && pause < p.most; i++ {
		pause *= 2
	}
	return min(pause, p.most)
}

// wrote records a write. What has lasted for longer than twice the longest pause starts the pauses again.
func (p *pace) wrote(wanted string, now time.Time) {
	switch {
	case !p.last.IsZero() && now.Sub(p.last) > 2*p.most:
		p.undoings = 0
	case p.undone(wanted):
		p.undoings++
	}
	p.last, p.wanted = now, wanted
}
