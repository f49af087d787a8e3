package podscope

import "time"

const (
	// between is the least time between two writes: after each of them API servers compile the conditions anew.
	between = 50 * time.Millisecond
	// betweenSweeps is the same for what is taken away, which nobody waits for.
	betweenSweeps = 500 * time.Millisecond
	// firstPause is before what somebody else undid is written again for the first time. The next ones double.
	firstPause = time.Second
)

// pace keeps from writing too often.
type pace struct {
	least, most time.Duration

	last   time.Time
	wanted string
	// undoings in a row.
	undoings int
}

// undone says that the same has been written before: somebody else has undone it.
func (p *pace) undone(wanted string) bool { return !p.last.IsZero() && p.wanted == wanted }

// wait is how long not to write yet.
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

// pause is the one before the same is written once more.
func (p *pace) pause() time.Duration {
	pause := firstPause
	for i := 0; i < p.undoings && pause < p.most; i++ {
		pause *= 2
	}
	return min(pause, p.most)
}

// wrote notes a write. What held for longer than twice the longest pause was no quarrel.
func (p *pace) wrote(wanted string, now time.Time) {
	switch {
	case !p.last.IsZero() && now.Sub(p.last) > 2*p.most:
		p.undoings = 0
	case p.undone(wanted):
		p.undoings++
	}
	p.last, p.wanted = now, wanted
}
