package workload

import (
	"time"

	"github.com/kruisekit/kruisekit/write"
)

// Cause is a write that no pass plans, and why it is made. The same write for another cause is another one.
type Cause struct {
	*write.Write

	Why string
}

// Due returns those of some patches that are to be made now, with the pauses of a pass between repetitions, and after
// how long the others are; zero for none. next is what is known once the writes that are due are sent, whatever their
// answers.
func (r Repeats) Due(patches []Cause, now time.Time) (due []*write.Write, after time.Duration, next Repeats) {
	all := repeats{known: r, own: map[repeatKey]repeat{}}
	for _, p := range patches {
		all.revision = p.Why
		w := &Write{Write: *p.Write}
		if pause := all.pause(w, now); pause > 0 {
			if after == 0 || pause < after {
				after = pause
			}
			continue
		}
		due = append(due, &w.Write)
		all.made(w, now)
	}
	return due, after, Repeats{made: all.recent(now), outdated: r.outdated}
}
