package workload

import (
	"maps"
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
	next = Repeats{made: maps.Clone(r.made), outdated: r.outdated}
	maps.DeleteFunc(next.made, func(_ repeatKey, is repeat) bool { return !is.isRecent(now) })
	for _, p := range patches {
		known := repeats{known: r, revision: p.Why}
		w := &Write{Write: *p.Write}
		if pause := known.pause(w, now); pause > 0 {
			if after == 0 || pause < after {
				after = pause
			}
			continue
		}
		due = append(due, &w.Write)
		known.made(w, now)
		if next.made == nil {
			next.made = map[repeatKey]repeat{}
		}
		maps.Copy(next.made, known.own)
	}
	return due, after, next
}
