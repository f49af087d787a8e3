package schedule

import (
	"fmt"
	"math"
	"time"

	"github.com/kruisekit/kruisekit/note"
)

const (
	// MaxWait is the longest time until a caller decides again. A timer does not notice that the clock was set.
	MaxWait = time.Hour
	// MaxAhead is how far Last may be after Now: clocks of two machines differ. A later one is the mistake of a clock.
	MaxAhead = time.Hour
	// MaxMissed is how many missed ticks lead to a child for the latest one. After more of them the next tick is close.
	MaxMissed = 100
	// MaxDeadlineSeconds is the longest deadline that a duration can hold, 292 years.
	MaxDeadlineSeconds = math.MaxInt64 / int64(time.Second)
)

// Concurrency is what to do at a tick while earlier children are active.
type Concurrency string

const (
	// Allow creates a child next to them. It is the default.
	Allow Concurrency = "Allow"
	// Forbid waits until they have finished.
	Forbid Concurrency = "Forbid"
	// Replace deletes them first.
	Replace Concurrency = "Replace"
)

// Input is what Plan decides upon.
type Input struct {
	Schedule Schedule
	// Created is when the schedule was created. The first tick is after it.
	Created time.Time
	// Last is the tick of the latest child; zero for none.
	Last time.Time
	// DeadlineSeconds is how late a child may be created. Nil for any time.
	DeadlineSeconds *int64
	// Concurrency counts where children are active.
	Concurrency Concurrency
	// Active is how many children have not finished.
	Active int
	// MaxActive is at how many active children no more is created, whatever Concurrency; zero for any number. Replace
	// deletes them anyway.
	MaxActive int
	// Paused holds every child back.
	Paused bool
	Now    time.Time
}

// Decision is what to do now.
type Decision struct {
	// Tick is the time to create a child for; zero for none.
	Tick time.Time
	// Held is the tick that has passed or has to wait, as the notes say; zero for none.
	Held time.Time
	// Replace asks to delete the active children before.
	Replace bool
	// Last is what to record as the last tick while the child of Tick does not exist: Input.Last, Now after a mistake of
	// the clock, or the latest of the ticks that are skipped. Once the child exists, Tick is.
	Last time.Time
	// Look is when to decide again; zero for when the input changes.
	Look time.Time
	// Notes explain the decision.
	Notes []note.Note
}

// Codes of the notes that are not Info, which are for users.
const (
	// NoteActive is a tick that waits for active children.
	NoteActive = "JobAlreadyActive"
	// NoteTooMany is a tick that waits because too many children are active.
	NoteTooMany = "TooManyActive"
	// NoteTooManyMissed are ticks that are skipped, the latest among them: the next tick is due.
	NoteTooManyMissed = "TooManyMissedTimes"
	// NoteTooLate is a tick whose deadline has passed.
	NoteTooLate = "MissSchedule"
	// NoteClockAhead is a last tick far in the future.
	NoteClockAhead = "ClockAhead"
)

// Plan decides whether to create a child now.
func Plan(in Input) Decision {
	p := planner{Input: in, begin: in.Last}
	if p.begin.IsZero() {
		p.begin = in.Created
	}
	p.Decision.Last = in.Last
	if p.begin.Sub(in.Now) > MaxAhead {
		p.note(note.Blocked, NoteClockAhead,
			"the last tick %s is in the future, the schedule continues from now", text(p.begin))
		p.begin = in.Now.Truncate(time.Second)
		p.Decision.Last = p.begin
	}
	if in.Paused {
		p.note(note.Info, "Paused", "the schedule is paused")
		return p.Decision
	}
	p.Look = p.look()
	tick := in.Schedule.Latest(p.begin, in.Now)
	if tick.IsZero() {
		return p.Decision
	}
	p.decide(tick)
	return p.Decision
}

type planner struct {
	Input
	Decision

	// begin is the time after which ticks are due.
	begin time.Time
}

// look returns when there is another tick, or MaxWait later.
func (p *planner) look() time.Time {
	from := p.Now
	switch {
	case p.begin.After(p.Now):
		from = p.begin
	case p.Schedule.every > 0:
		// The ticks of "@every" are counted from the last one.
		if tick := p.Schedule.Latest(p.begin, p.Now); tick.IsZero() {
			from = p.begin
		} else {
			from = tick
		}
	}
	next, latest := p.Schedule.Next(from), p.Now.Add(MaxWait)
	if next.IsZero() {
		p.note(note.Info, "NoTick", "the schedule has no time in the next five years")
		return latest
	}
	if next.After(latest) {
		return latest
	}
	return next
}

// decide is about a tick that is due.
func (p *planner) decide(tick time.Time) {
	switch {
	case p.DeadlineSeconds != nil && p.Now.Sub(tick) >= deadline(*p.DeadlineSeconds):
		p.note(note.Blocked, NoteTooLate, "the tick %s is over, its deadline was %d seconds later",
			text(tick), *p.DeadlineSeconds)
		p.Held = tick
		return
	case p.Concurrency == Forbid && p.Active > 0:
		p.note(note.Waiting, NoteActive, "the tick %s waits until active children finish: %d", text(tick), p.Active)
		p.Held = tick
		return
	case p.MaxActive > 0 && p.Active >= p.MaxActive && p.Concurrency != Replace:
		p.note(note.Blocked, NoteTooMany, "the tick %s waits until active children finish: %d, at most %d", text(tick),
			p.Active, p.MaxActive)
		p.Held = tick
		return
	case p.tooManyMissed():
		p.note(note.Blocked, NoteTooManyMissed,
			"more than %d ticks were missed until %s, the schedule continues with the next one", MaxMissed, text(tick))
		p.Held, p.Decision.Last = tick, tick
		return
	}
	if first := p.Schedule.Next(p.begin); first.Before(tick) {
		p.note(note.Info, "Skipped", "missed ticks from %s on are skipped", text(first))
	}
	p.note(note.Info, "Due", "the tick %s is due", text(tick))
	p.Tick = tick
	p.Replace = p.Concurrency == Replace && p.Active > 0
}

// tooManyMissed counts the ticks that are due, as the reference does: those whose deadline has passed do not count.
func (p *planner) tooManyMissed() bool {
	tick := p.begin
	if p.DeadlineSeconds != nil {
		if earliest := p.Now.Add(-deadline(*p.DeadlineSeconds)); earliest.After(tick) {
			tick = earliest
		}
	}
	for range MaxMissed + 1 {
		if tick = p.Schedule.Next(tick); tick.IsZero() || tick.After(p.Now) {
			return false
		}
	}
	return true
}

// deadline returns a duration, which is never negative.
func deadline(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), MaxDeadlineSeconds)) * time.Second
}

func (p *planner) note(level note.Level, code, format string, args ...any) {
	p.Notes = append(p.Notes, note.Note{Level: level, Code: code, Text: fmt.Sprintf(format, args...)})
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
