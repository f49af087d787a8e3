package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// maxExpression is the longest expression in bytes. Each of the five fields can be a list, and a list of all minutes is
// 170 bytes long.
const maxExpression = 1024

// ErrZone is the error of a time zone that is unknown, or is given twice.
var ErrZone = errors.New("time zone")

// In is where a schedule holds.
type In struct {
	// Zone is an IANA name. Nil for Local. A zone in the expression itself wins.
	Zone *string
	// Local is where a schedule without a zone holds. Nil for UTC.
	Local *time.Location
}

// Schedule is a parsed expression. The zero value has no ticks.
type Schedule struct {
	spec *cron.SpecSchedule
	// every is the distance of the ticks of "@every"; zero for another expression.
	every time.Duration
}

// Parse returns the schedule of an expression. The error wraps ErrZone where the zone is to blame.
func Parse(expression string, in In) (Schedule, error) {
	switch {
	case len(expression) > maxExpression:
		return Schedule{}, fmt.Errorf("must have at most %d characters", maxExpression)
	case strings.TrimSpace(expression) == "":
		return Schedule{}, errors.New("must not be empty")
	}
	location := in.Local
	if location == nil {
		location = time.UTC
	}
	if in.Zone != nil && !HasZone(expression) {
		var err error
		if location, err = zone(*in.Zone); err != nil {
			return Schedule{}, err
		}
	}
	expression, own, err := cutZone(expression)
	if err != nil {
		return Schedule{}, err
	}
	if own != nil {
		location = own
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return Schedule{}, err //nolint:wrapcheck // the parser's words are all that there is
	}
	switch s := parsed.(type) {
	case *cron.SpecSchedule:
		s.Location = location
		return Schedule{spec: s}, nil
	case cron.ConstantDelaySchedule:
		return Schedule{every: s.Delay}, nil
	}
	return Schedule{}, fmt.Errorf("%T is not supported", parsed)
}

// HasZone reports whether an expression names a zone, as "TZ=Asia/Shanghai 0 10 * * *" does.
func HasZone(expression string) bool { return strings.Contains(expression, "TZ") }

// cutZone returns an expression without its zone. The parser itself panics where nothing follows the zone.
func cutZone(expression string) (rest string, own *time.Location, err error) {
	if !strings.HasPrefix(expression, "TZ=") && !strings.HasPrefix(expression, "CRON_TZ=") {
		return expression, nil, nil
	}
	prefix, rest, found := strings.Cut(expression, " ")
	rest = strings.TrimSpace(rest)
	if !found || rest == "" || strings.HasPrefix(rest, "TZ=") || strings.HasPrefix(rest, "CRON_TZ=") {
		return "", nil, errors.New("must have five fields, or a descriptor, after the time zone")
	}
	_, name, _ := strings.Cut(prefix, "=")
	if own, err = time.LoadLocation(name); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrZone, err)
	}
	return rest, own, nil
}

// zone loads a zone of a field. The zone of a process is none: each replica may have another one.
func zone(name string) (*time.Location, error) {
	switch {
	case name == "":
		return nil, fmt.Errorf("%w: must not be empty", ErrZone)
	case strings.EqualFold(name, "Local"):
		return nil, fmt.Errorf("%w: must be an IANA name, and not Local", ErrZone)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrZone, err)
	}
	return location, nil
}

// ValidateZone returns an error for a zone that Parse rejects.
func ValidateZone(name string) error {
	_, err := zone(name)
	return err
}

// Next returns the first tick after a time. The ticks of "@every" are counted from a tick, or from when they begin.
// Zero for a schedule that has no tick in the next five years.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return after.Truncate(time.Second).Add(s.every).UTC()
	case s.spec == nil:
		return time.Time{}
	}
	return s.spec.Next(after).UTC()
}

// years are how far back a tick is searched.
const years = 5 * 366 * 24 * time.Hour

// Latest returns the last tick after one time and not after another one; zero for none. A tick that is more than five
// years older than until is none. Latest begins close to until, so that the number of missed ticks costs little.
func (s Schedule) Latest(after, until time.Time) (latest time.Time) {
	if s.every > 0 {
		begin := after.Truncate(time.Second)
		if passed := until.Sub(begin); passed >= s.every {
			latest = begin.Add(passed - passed%s.every).UTC()
		}
		return latest
	}
	for back := time.Hour; latest.IsZero() && after.Before(until); back *= 8 {
		begin := until.Add(-min(back, years))
		if begin.Before(after) {
			begin = after
		}
		for tick := s.Next(begin); !tick.IsZero() && !tick.After(until); tick = s.Next(tick) {
			latest = tick
		}
		if back >= years || begin.Equal(after) {
			break
		}
	}
	return latest
}
