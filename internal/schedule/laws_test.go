package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/internal/schedule"
)

// expressions and zones that worlds draw from. Clocks change by half an hour in one of the zones.
var (
	expressions = []string{
		"* * * * *", "*/7 * * * *", "0 * * * *", "30 1,2,3 * * *", "0 0 * * *", "30 2 * * SUN", "15 12 1 * *", "0 0 29 2 *",
		"59 23 31 12 *",
		"@every 1s", "@every 17m", "@every 25h", "0 0 13 * FRI", "5-55/10 */3 * * 1-5", "0 0 30 2 *", "45 1 1-7 3,10,11 0",
	}
	zones = []string{
		"", "America/New_York", "Europe/Berlin", "Australia/Sydney", "Asia/Kathmandu",
	}
)

// naive looks at the clock on the wall, minute by minute.
func naive(expression, zone string, after, until time.Time) []time.Time {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	fields := strings.Fields(strings.NewReplacer("SUN", "0", "FRI", "5").Replace(expression))
	restricts := func(field string) bool { return field != "*" && field != "?" }
	var all []time.Time
	for t := after.Truncate(time.Minute); !t.After(until); t = t.Add(time.Minute) {
		wall := t.In(location)
		of := func(i, value int) bool { return lists(fields[i], value) }
		if !t.After(after) || !of(0, wall.Minute()) || !of(1, wall.Hour()) || !of(3, int(wall.Month())) {
			continue
		}
		days := of(2, wall.Day()) && of(4, int(wall.Weekday()))
		if restricts(fields[2]) && restricts(fields[4]) {
			days = of(2, wall.Day()) || of(4, int(wall.Weekday()))
		}
		if days {
			all = append(all, t)
		}
	}
	return all
}

// lists reports whether a field has a value: stars, numbers, ranges and steps.
func lists(field string, value int) bool {
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		low, high, ranged := strings.Cut(span, "-")
		from, upTo := 0, 99
		if span != "*" && span != "?" {
			from, _ = strconv.Atoi(low)
			if upTo = from; ranged {
				upTo, _ = strconv.Atoi(high)
			}
		}
		by := 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		if value >= from && value <= upTo && (value-from)%by == 0 {
			return true
		}
	}
	return false
}

// The first tick and the latest one are those that a wall clock shows, also where clocks change by an hour. Where they
// change by half of one, as in Australia/Lord_Howe, robfig/cron leaves out a midnight or adds a tick, as do CronJobs.
func TestTicksAreThoseOfAWallClock(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	for range 120 {
		expression, zone := expressions[random.IntN(len(expressions))], zones[random.IntN(len(zones))]
		if strings.HasPrefix(expression, "@") {
			continue
		}
		s := parse(t, expression, zone)
		from := at("2026-01-01T00:00:00Z").Add(time.Duration(random.Int64N(int64(2 * 365 * 24 * time.Hour))))
		if random.IntN(3) > 0 {
			// Around the hours at which clocks change.
			from = at([]string{
				"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z",
				"2026-03-28T22:00:00Z", "2026-10-03T15:30:00Z",
			}[random.IntN(6)]).
				Add(time.Duration(random.Int64N(int64(48*time.Hour))) - 36*time.Hour)
		}
		until := from.Add(time.Duration(random.Int64N(int64(72 * time.Hour))))
		all := naive(expression, zone, from, until)
		what := fmt.Sprintf("seed %d: %q in %q after %s until %s", seed, expression, zone, from, until)
		next, latest := s.Next(from), s.Latest(from, until)
		if len(all) == 0 {
			if next.Before(until) && !next.IsZero() || !latest.IsZero() {
				t.Fatalf("%s: got %s and %s, want none", what, next, latest)
			}
			continue
		}
		if !next.Equal(all[0]) || !latest.Equal(all[len(all)-1]) {
			t.Fatalf("%s: got %s and %s, want %s and %s", what, next, latest, all[0], all[len(all)-1])
		}
	}
}

// The ticks of "@every" are those that a walk finds.
func TestEvery(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		s := parse(t, fmt.Sprintf("@every %ds", 1+random.IntN(5000)), "")
		begin := at("2026-01-01T00:00:00Z").Add(time.Duration(random.Int64N(int64(time.Hour))))
		until := begin.Add(time.Duration(random.Int64N(int64(2 * time.Hour))))
		var want time.Time
		for tick := s.Next(begin); !tick.After(until); tick = s.Next(tick) {
			want = tick
		}
		if got := s.Latest(begin, until); !got.Equal(want) {
			t.Fatalf("seed %d: after %s until %s: got %s, want %s", seed, begin, until, got, want)
		}
	}
}

// life is a schedule, and a caller that looks when it is asked to, records the answer, and fails at times.
type life struct {
	*testing.T

	random *rand.Rand
	what   string
	in     schedule.Input
	// clock is what the caller reads, real the time that passes.
	clock, real time.Time
	had         map[int64]bool
	// mistaken is that the clock was set by more than MaxAhead.
	mistaken bool
}

// Over years with clocks that are set, restarts, pauses and lost children, no tick has two children, no tick is older
// than an earlier one, and no schedule stops.
func TestYears(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i := range 2 * len(expressions) {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		expression, zone := expressions[i%len(expressions)], zones[random.IntN(len(zones))]
		start := at("2026-01-01T00:00:00Z").Add(
			time.Duration(random.Int64N(int64(365 * 24 * time.Hour)))).Truncate(time.Second)
		l := &life{
			T:      t,
			random: random,
			what:   fmt.Sprintf("seed %d/%d, %q in %q", seed, i, expression, zone),
			clock:  start,
			real:   start,
			had:    map[int64]bool{},
			in:     schedule.Input{Schedule: parse(t, expression, zone), Created: start, MaxActive: 5},
		}
		for range 500 {
			l.step()
		}
		l.survives()
	}
}

// step is a look at the schedule, and what happens until the next one.
func (l *life) step() {
	l.in.Now = l.clock
	before := l.in.Last
	d := schedule.Plan(l.in)
	if d.Tick.IsZero() && d.Last.After(before) && !before.IsZero() {
		l.checkSkipped(before, d)
	}
	if !d.Look.IsZero() && (!d.Look.After(l.clock) || d.Look.Sub(l.clock) > schedule.MaxWait+schedule.MaxAhead) {
		l.Fatalf("%s: at %s looks at %s", l.what, l.clock, d.Look)
	}
	if d.Look.IsZero() != l.in.Paused {
		l.Fatalf("%s: at %s looks at %s, paused %t", l.what, l.clock, d.Look, l.in.Paused)
	}
	l.in.Last = d.Last
	if !d.Tick.IsZero() {
		l.check(before, d)
		if l.random.IntN(5) > 0 { // else the create is refused, or the process dies before
			l.had[d.Tick.Unix()] = true
			l.in.Active++
			l.in.Last = d.Tick
			if d.Replace {
				l.in.Active = 1
			}
		}
	}
	l.happen()
	wait := time.Duration(l.random.Int64N(int64(10 * time.Minute)))
	if !d.Look.IsZero() && l.random.IntN(3) > 0 {
		wait = d.Look.Sub(l.clock)
	}
	if l.random.IntN(50) == 0 {
		wait += time.Duration(l.random.Int64N(int64(100 * 24 * time.Hour))) // nothing runs
	}
	l.pass(max(wait, 0))
}

func (l *life) pass(wait time.Duration) {
	l.clock, l.real = l.clock.Add(wait), l.real.Add(wait)
}

// check is what holds for a tick.
func (l *life) check(before time.Time, d schedule.Decision) {
	l.Helper()
	s := l.in.Schedule
	switch {
	case l.had[d.Tick.Unix()] && !l.mistaken:
		l.Fatalf("%s: at %s the tick %s has a second child", l.what, l.clock, d.Tick)
	case !d.Tick.After(before):
		l.Fatalf("%s: at %s the tick %s is not after %s", l.what, l.clock, d.Tick, before)
	case d.Tick.After(l.clock):
		l.Fatalf("%s: at %s the tick %s is early", l.what, l.clock, d.Tick)
	case s.Next(d.Tick).Equal(d.Tick) || !s.Next(d.Tick).IsZero() && !s.Next(d.Tick).After(l.clock):
		l.Fatalf("%s: at %s the tick %s is not the latest", l.what, l.clock, d.Tick)
	case l.in.Paused || l.in.Concurrency == schedule.Forbid && l.in.Active > 0 || l.in.Active >= 5 && !d.Replace:
		l.Fatalf("%s: at %s the tick %s is due although %+v", l.what, l.clock, d.Tick, l.in)
	}
}

// checkSkipped is what holds for ticks that get no child: too many were missed.
func (l *life) checkSkipped(before time.Time, d schedule.Decision) {
	l.Helper()
	n := 0
	for tick := l.in.Schedule.Next(before); n <= schedule.MaxMissed &&
		!tick.After(d.Last); tick = l.in.Schedule.Next(tick) {
		n++
	}
	if n <= schedule.MaxMissed || l.in.Schedule.Next(d.Last).Before(l.clock) {
		l.Fatalf("%s: at %s %d ticks since %s are skipped until %s", l.what, l.clock, n, before, d.Last)
	}
}

// happen is what users, children and clocks do.
func (l *life) happen() {
	switch l.random.IntN(40) {
	case 0:
		l.in.Paused = !l.in.Paused
	case 1:
		l.in.Concurrency = []schedule.Concurrency{schedule.Allow, schedule.Forbid, schedule.Replace, ""}[l.random.IntN(4)]
	case 2, 3, 4, 5:
		l.in.Active = max(l.in.Active-1, 0)
	case 6: // another machine
		l.clock = l.clock.Add(time.Duration(l.random.Int64N(int64(2*time.Minute))) - time.Minute)
	case 7:
		l.jump()
	}
}

// jump sets the clock wrong, or right again.
func (l *life) jump() {
	if l.random.IntN(4) > 0 {
		return
	}
	l.clock = l.clock.Add(time.Duration(l.random.Int64N(int64(20*365*24*time.Hour))) - 10*365*24*time.Hour)
	l.mistaken = true
}

// survives expects a child within a time that a tick takes at most, after all that happened.
func (l *life) survives() {
	l.Helper()
	l.in.Paused, l.in.Active = false, 0
	if l.in.Schedule.Next(l.clock).IsZero() {
		return
	}
	l.in.Now = l.clock
	l.in.Last = schedule.Plan(l.in).Last
	l.in.Now = l.in.Schedule.Next(l.clock.Add(schedule.MaxAhead)).Add(schedule.MaxWait)
	d := schedule.Plan(l.in)
	if d.Tick.IsZero() { // too many were missed: the next one is due
		l.in.Last, l.in.Now = d.Last, l.in.Schedule.Next(l.in.Now)
		d = schedule.Plan(l.in)
	}
	if d.Tick.IsZero() {
		l.Fatalf("%s: at %s there is no tick since %s", l.what, l.in.Now, l.in.Last)
	}
}

// FuzzParse: every text is a schedule or an error, ticks increase, and the search agrees with one step.
func FuzzParse(f *testing.F) {
	for _, e := range expressions {
		f.Add(e, "Europe/Berlin", int64(1772445900), int64(4000))
	}
	f.Add("TZ=Foo", "", int64(0), int64(0))
	f.Add("CRON_TZ=UTC TZ=", "UTC", int64(-1<<62), int64(1<<62))
	f.Add("1-59/9999999999999999999 ?,?/2 */31 FEB 0-6", "Local", int64(1<<40), int64(-1))
	f.Add(", , , , ,", "UTC", int64(0), int64(60))
	f.Fuzz(func(t *testing.T, expression, zone string, from, seconds int64) {
		s, err := schedule.Parse(expression, schedule.In{Zone: &zone})
		if err != nil {
			return
		}
		after := time.Unix(from%(1<<36), 0)
		until := after.Add(time.Duration(seconds % (1 << 28) * int64(time.Second)))
		next, latest := s.Next(after), s.Latest(after, until)
		if !next.IsZero() && !next.After(after) {
			t.Errorf("%q: after %s comes %s", expression, after, next)
		}
		if !latest.IsZero() && (latest.Before(next) || latest.After(until)) {
			t.Errorf("%q: the latest after %s until %s is %s, the next %s", expression, after, until, latest, next)
		}
		d := schedule.Plan(schedule.Input{Schedule: s, Created: after, Now: until, DeadlineSeconds: &seconds})
		if d.Look.IsZero() || !d.Tick.IsZero() && !d.Tick.Equal(latest) {
			t.Errorf("%q: %+v", expression, d)
		}
	})
}
