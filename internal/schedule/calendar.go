package schedule

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// years are how far a tick is searched.
const years = 5

// anyDay is the bit of a star, beside those of the days.
const anyDay = 1 << 63

// calendar finds the ticks of five fields. It looks at days in the calendar of the zone, and then at the hours and
// minutes of a day. The parser's own search skips days that begin at one o'clock, because clocks change at midnight.
type calendar struct{ *cron.SpecSchedule }

// A day is a number of days since 1970.
type day int64

const secondsOfDay = 24 * 60 * 60

// dayOf returns the day that the calendar of the zone shows at a time.
func (c calendar) dayOf(t time.Time) day {
	_, offset := t.In(c.Location).Zone()
	local := t.Unix() + int64(offset)
	d := local / secondsOfDay
	if local%secondsOfDay < 0 {
		d--
	}
	return day(d)
}

func (d day) midnight() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

// next returns the first tick after a time.
func (c calendar) next(after time.Time) time.Time {
	today := c.dayOf(after)
	last := day(time.Date(today.midnight().Year()+years, time.December, 31, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay)
	for d := today; d <= last; d++ {
		if !c.matches(d) {
			continue
		}
		var first time.Time
		c.ticks(d, func(tick time.Time) {
			if tick.After(after) && (first.IsZero() || tick.Before(first)) {
				first = tick
			}
		})
		if !first.IsZero() {
			return first
		}
	}
	return time.Time{}
}

// latest returns the last tick after one time and not after another one.
func (c calendar) latest(after, until time.Time) time.Time {
	begin := max(c.dayOf(after), c.dayOf(until)-years*366)
	for d := c.dayOf(until); d >= begin; d-- {
		if !c.matches(d) {
			continue
		}
		var last time.Time
		c.ticks(d, func(tick time.Time) {
			if tick.After(after) && !tick.After(until) && tick.After(last) {
				last = tick
			}
		})
		if !last.IsZero() {
			return last
		}
	}
	return time.Time{}
}

// matches reports whether a day is one of the schedule. Where both the days of the month and those of the week are
// restricted, a day of either kind is.
func (c calendar) matches(d day) bool {
	date := d.midnight()
	if c.Month&(1<<uint(date.Month())) == 0 {
		return false
	}
	ofMonth, ofWeek := c.Dom&(1<<uint(date.Day())) != 0, c.Dow&(1<<uint(date.Weekday())) != 0
	if c.Dom&anyDay != 0 || c.Dow&anyDay != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// ticks yields the ticks of a day, in no order: none for a time that clocks skip, and two for one that they repeat.
func (c calendar) ticks(d day, yield func(time.Time)) {
	midnight := d.midnight()
	before, after := c.offset(midnight.Add(-24*time.Hour)), c.offset(midnight.Add(48*time.Hour))
	for hours := c.Hour &^ anyDay; hours != 0; hours &= hours - 1 {
		hour := midnight.Add(time.Duration(bits.TrailingZeros64(hours)) * time.Hour)
		for minutes := c.Minute &^ anyDay; minutes != 0; minutes &= minutes - 1 {
			local := hour.Add(time.Duration(bits.TrailingZeros64(minutes)) * time.Minute)
			if before == after {
				yield(local.Add(-before))
				continue
			}
			for _, offset := range []time.Duration{before, after} {
				if tick := local.Add(-offset); c.offset(tick) == offset {
					yield(tick)
				}
			}
		}
	}
}

// offset is how far the clocks of the zone are ahead of UTC at a time.
func (c calendar) offset(t time.Time) time.Duration {
	_, seconds := t.In(c.Location).Zone()
	return time.Duration(seconds) * time.Second
}
