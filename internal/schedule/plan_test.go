package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/schedule"
)

func at(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

func parse(t testing.TB, expression, zone string) schedule.Schedule {
	t.Helper()
	in := schedule.In{}
	if zone != "" {
		in.Zone = &zone
	}
	s, err := schedule.Parse(expression, in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// codes of the notes of a decision.
func codes(d schedule.Decision) string {
	all := make([]string, 0, len(d.Notes))
	for _, n := range d.Notes {
		all = append(all, n.Code)
	}
	return strings.Join(all, " ")
}

func TestPlan(t *testing.T) {
	const created = "2026-03-02T10:02:00Z"
	for name, c := range map[string]struct {
		why            string
		expression     string // default */5 * * * *
		last, now      string
		change         func(*schedule.Input)
		tick, recorded string // recorded is last by default
		replace        bool
		look           string
		codes          string
	}{
		"new": {
			why: "the first tick is after the creation", now: "2026-03-02T10:04:59Z", look: "2026-03-02T10:05:00Z",
		},
		"missed": {
			why:   "of missed ticks the latest is due",
			last:  "2026-03-02T10:05:00Z",
			now:   "2026-03-02T10:31:00Z",
			tick:  "2026-03-02T10:30:00Z",
			look:  "2026-03-02T10:35:00Z",
			codes: "Skipped Due",
		},
		"unseen": {
			why:   "of a hundred missed ticks the latest is due",
			last:  "2026-03-02T02:05:00Z",
			now:   "2026-03-02T10:26:00Z",
			tick:  "2026-03-02T10:25:00Z",
			look:  "2026-03-02T10:30:00Z",
			codes: "Skipped Due",
		},
		"too many unseen": {
			why:      "one more: the next tick is the first one",
			last:     "2026-03-02T02:00:00Z",
			now:      "2026-03-02T10:26:00Z",
			recorded: "2026-03-02T10:25:00Z",
			look:     "2026-03-02T10:30:00Z",
			codes:    "TooManyMissedTimes",
		},
		"unseen for years": {
			why:        "how many are missed costs no time",
			expression: "@every 1s",
			last:       "2019-03-02T02:00:00Z",
			now:        "2026-03-02T10:26:00Z",
			recorded:   "2026-03-02T10:26:00Z",
			look:       "2026-03-02T10:26:01Z",
			codes:      "TooManyMissedTimes",
		},
		"unseen and forbidden": {
			why:    "the tick waits for the child",
			last:   "2026-03-02T02:00:00Z",
			now:    "2026-03-02T10:26:00Z",
			change: active(schedule.Forbid, 1),
			look:   "2026-03-02T10:30:00Z",
			codes:  "JobAlreadyActive",
		},
		"paused": {
			why:    "no child, and no look",
			now:    "2026-03-02T10:05:00Z",
			change: func(i *schedule.Input) { i.Paused = true },
			codes:  "Paused",
		},
		"late by 11": {
			why:    "the deadline is 10 seconds",
			now:    "2026-03-02T10:05:11Z",
			change: deadline(10),
			look:   "2026-03-02T10:10:00Z",
			codes:  "MissSchedule",
		},
		"huge deadline": {
			why:    "more than a duration holds is for ever",
			last:   "2026-03-02T10:00:00Z",
			now:    "2026-03-02T10:05:00Z",
			change: deadline(1<<63 - 1),
			tick:   "2026-03-02T10:05:00Z",
			look:   "2026-03-02T10:10:00Z",
			codes:  "Due",
		},
		"negative deadline": {
			why:    "is none, as zero: each tick is over",
			now:    "2026-03-02T10:05:00Z",
			change: deadline(-1 << 63),
			look:   "2026-03-02T10:10:00Z",
			codes:  "MissSchedule",
		},
		"forbidden": {
			why:    "the tick waits",
			now:    "2026-03-02T10:06:00Z",
			change: active(schedule.Forbid, 1),
			look:   "2026-03-02T10:10:00Z",
			codes:  "JobAlreadyActive",
		},
		"replaced": {
			why:     "active children go first",
			now:     "2026-03-02T10:06:00Z",
			change:  active(schedule.Replace, 2),
			tick:    "2026-03-02T10:05:00Z",
			replace: true,
			look:    "2026-03-02T10:10:00Z",
			codes:   "Due",
		},
		"unknown": {
			why:    "an unknown policy is the default",
			now:    "2026-03-02T10:06:00Z",
			change: active("Sometimes", 99),
			tick:   "2026-03-02T10:05:00Z",
			look:   "2026-03-02T10:10:00Z",
			codes:  "Due",
		},
		"too many": {
			why:    "not without a bound",
			now:    "2026-03-02T10:06:00Z",
			change: active(schedule.Allow, 100),
			look:   "2026-03-02T10:10:00Z",
			codes:  "TooManyActive",
		},
		"too many to replace": {
			why:     "they go",
			now:     "2026-03-02T10:06:00Z",
			change:  active(schedule.Replace, 100),
			tick:    "2026-03-02T10:05:00Z",
			replace: true,
			look:    "2026-03-02T10:10:00Z",
			codes:   "Due",
		},
		"clock back a little": {
			why:  "another machine was ahead: no tick twice",
			last: "2026-03-02T10:10:00Z",
			now:  "2026-03-02T10:08:00Z",
			look: "2026-03-02T10:15:00Z",
		},
		"clock back a lot": {
			why:      "the clock was wrong: the schedule goes on from now",
			last:     "2036-03-02T10:10:00Z",
			now:      "2026-03-02T10:08:00.5Z",
			recorded: "2026-03-02T10:08:00Z",
			look:     "2026-03-02T10:10:00Z",
			codes:    "ClockAhead",
		},
		"seldom": {
			why: "looks at least once an hour", expression: "@yearly", now: "2026-03-02T10:08:00Z", look: "2026-03-02T11:08:00Z",
		},
		"never": {
			why:        "the schedule stays alive, whatever its expression",
			expression: "0 0 30 2 *",
			now:        "2026-03-02T10:08:00Z",
			look:       "2026-03-02T11:08:00Z",
			codes:      "NoTick",
		},
		"every": {
			why:        "counts from the creation",
			expression: "@every 7m",
			now:        "2026-03-02T10:30:30Z",
			tick:       "2026-03-02T10:30:00Z",
			look:       "2026-03-02T10:37:00Z",
			codes:      "Skipped Due",
		},
		"every, later": {
			why:        "counts from the last tick",
			expression: "@every 7m",
			last:       "2026-03-02T10:31:00Z",
			now:        "2026-03-02T10:37:00Z",
			look:       "2026-03-02T10:38:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			expression := c.expression
			if expression == "" {
				expression = "*/5 * * * *"
			}
			in := schedule.Input{
				Schedule:  parse(t, expression, ""),
				Created:   at(created),
				Last:      at(c.last),
				MaxActive: 100,
				Now:       at(c.now),
			}
			if c.change != nil {
				c.change(&in)
			}
			want := schedule.Decision{Tick: at(c.tick), Replace: c.replace, Last: at(c.last), Look: at(c.look)}
			if c.recorded != "" {
				want.Last = at(c.recorded)
			}
			got := schedule.Plan(in)
			if diff := cmp.Diff(c.codes, codes(got)); diff != "" {
				t.Errorf("%s: notes %v (-want +got):\n%s", c.why, got.Notes, diff)
			}
			if held := strings.Contains("JobAlreadyActive MissSchedule TooManyActive TooManyMissedTimes", codes(got)) &&
				len(got.Notes) > 0; !got.Held.IsZero() != held {
				t.Errorf("%s: %s is held", c.why, got.Held)
			}
			got.Notes, got.Held = nil, time.Time{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func deadline(seconds int64) func(*schedule.Input) {
	return func(i *schedule.Input) { i.DeadlineSeconds = ptr.To(seconds) }
}

func active(c schedule.Concurrency, n int) func(*schedule.Input) {
	return func(i *schedule.Input) { i.Concurrency, i.Active = c, n }
}

func TestName(t *testing.T) {
	tick := at("2026-03-02T10:05:00Z")
	for why, c := range map[string]struct{ owner, want string }{
		"the owner and the tick":      {"web", "web-1772445900"},
		"52 characters stay":          {strings.Repeat("a", 52), strings.Repeat("a", 52) + "-1772445900"},
		"53 are cut":                  {strings.Repeat("a", 53), strings.Repeat("a", 43) + "-abe346a7-1772445900"},
		"another end is another name": {strings.Repeat("a", 54), strings.Repeat("a", 43) + "-a3f01b69-1772445900"},
		"a cut does not leave two dashes": {
			strings.Repeat("a", 42) + "-" + strings.Repeat("b", 20), strings.Repeat("a", 42) + "-ef8d7b62-1772445900",
		},
	} {
		t.Run(why, func(t *testing.T) {
			got := schedule.Name(c.owner, tick)
			if len(got) > 63 || strings.Contains(got, "--") {
				t.Errorf("%q has %d characters", got, len(got))
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
