package entries

import "time"

const (
	// between is the least time between two writes: API servers compile the conditions again after each.
	between = 50 * time.Millisecond
	// burst is how many writes may come as quickly as that. Each further one waits until afterwards has passed since one
	// before, so that no minute has more than burst and 120 writes, and nothing that is wanted waits for longer than
	// afterwards.
	burst      = 20
	afterwards = 500 * time.Millisecond
	// betweenSweeps is the same for removals, which are not urgent.
	betweenSweeps = 500 * time.Millisecond
	// firstPause is the pause before entries that another writer has changed are written again. The next pauses double.
	firstPause = 500 * time.Millisecond
	// lasting is how long a write must be in force for its undoing not to belong to the one before.
	lasting = 30 * time.Second
)

// rhythm is the least and the longest time between two writes.
type rhythm struct{ least, most time.Duration }

// pace limits the writes of one configuration.
type pace struct {
	// last is when wanted was written, over the version of the configuration.
	last         time.Time
	wanted, over string
	// spent is until when the writes so far count, which take up afterwards each.
	spent time.Time
	// undoneAt is when the write was first seen to be undone.
	undoneAt time.Time
	// undoings is how often in a row another writer has undone the write soon.
	undoings int
}

// seen returns the pace after an observation. Once the cache shows another version than the one that was written over,
// it is not behind.
func (p pace) seen(version string) pace {
	if p.over != version {
		p.over = ""
	}
	return p
}

// undone reports whether the same was written before, and undone by another writer.
func (p pace) undone(wanted string) bool { return !p.last.IsZero() && p.wanted == wanted }

// wait returns how long to wait before the next write.
func (p pace) wait(version, wanted string, r rhythm, now time.Time) time.Duration {
	if p.last.IsZero() {
		return 0
	}
	if p.over != "" && version == p.over && now.Sub(p.last) < time.Second {
		return catchUp // the cache does not show the last write yet
	}
	pause := r.least
	if p.undone(wanted) && !p.lasted() {
		pause = p.pause(r)
	}
	return max(0, p.last.Add(pause).Sub(now), p.spent.Sub(now)-(burst-1)*afterwards)
}

// lasted reports whether the last write was in force for long.
func (p pace) lasted() bool { return p.undoneAt.Sub(p.last) >= lasting }

// pause returns the pause before the same is written again.
func (p pace) pause(r rhythm) time.Duration {
	pause := firstPause
	for i := 0; i < p.undoings && pause < r.most; i++ {
		pause *= 2
	}
	return min(pause, r.most)
}

// wrote returns the pace after a write.
func (p pace) wrote(version, wanted string, now time.Time) pace {
	next := pace{last: now, wanted: wanted, over: version, spent: p.spent}
	if next.spent.Before(now) {
		next.spent = now
	}
	next.spent = next.spent.Add(afterwards)
	switch {
	case p.undone(wanted) && !p.lasted():
		next.undoings = p.undoings + 1
	case !p.undone(wanted) && !p.last.IsZero() && now.Sub(p.last) < lasting:
		next.undoings = p.undoings // something else is wanted, and the other writer may go on
	}
	return next
}
