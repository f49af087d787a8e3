package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/schedule"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		why, expression string
		zone            *string
		fails, ofZone   bool
	}{
		"five fields":        {why: "minute, hour, day, month, day of the week", expression: "30 2 1-7,15 JAN-jun/2 mon"},
		"question mark":      {why: "as a star", expression: "0 10 ? * ?"},
		"daily":              {why: "a descriptor", expression: "@daily"},
		"every":              {why: "a distance", expression: "@every 1h30m"},
		"every, negative":    {why: "becomes a second", expression: "@every -5s"},
		"zone":               {why: "an IANA name", expression: "0 10 * * *", zone: ptr.To("Asia/Shanghai")},
		"zone inside":        {why: "in front", expression: "TZ=Asia/Shanghai 0 10 * * *"},
		"zone inside, cron":  {why: "in front", expression: "CRON_TZ=Asia/Shanghai   @daily"},
		"both":               {why: "the zone inside wins", expression: "TZ=UTC @daily", zone: ptr.To("Nowhere")},
		"empty":              {why: "there is no schedule", expression: "", fails: true},
		"blank":              {why: "there is no schedule", expression: "  ", fails: true},
		"three fields":       {why: "two are missing", expression: "* * *", fails: true},
		"six fields":         {why: "there are no seconds", expression: "* * * * * *", fails: true},
		"Sunday is 0":        {why: "and not 7", expression: "0 0 * * 7", fails: true},
		"minute 60":          {why: "out of range", expression: "60 * * * *", fails: true},
		"step 0":             {why: "no step", expression: "*/0 * * * *", fails: true},
		"unknown descriptor": {why: "no such word", expression: "@monday", fails: true},
		"every nothing":      {why: "no duration", expression: "@every", fails: true},
		"only a zone":        {why: "the parser panics", expression: "TZ=Foo", fails: true},
		"only zones":         {why: "the parser panics", expression: "TZ=UTC CRON_TZ=UTC", fails: true},
		"a zone and a blank": {why: "no fields", expression: "TZ=UTC ", fails: true},
		"unknown inside":     {why: "no such zone", expression: "TZ=Mars/Olympus 0 10 * * *", fails: true, ofZone: true},
		"unknown zone": {
			why: "no such zone", expression: "@daily", zone: ptr.To("Mars/Olympus"), fails: true, ofZone: true,
		},
		"local zone": {
			why: "each process has another one", expression: "@daily", zone: ptr.To("LOCAL"), fails: true, ofZone: true,
		},
		"empty zone": {why: "no zone", expression: "@daily", zone: ptr.To(""), fails: true, ofZone: true},
		"a file": {
			why: "no zone, but a path", expression: "@daily", zone: ptr.To("../../etc/passwd"), fails: true, ofZone: true,
		},
		"longer than allowed": {
			why: "the text has a bound", expression: strings.Repeat("0,", 600) + "0 * * * *", fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.Parse(c.expression, schedule.In{Zone: c.zone})
			if (err != nil) != c.fails || errors.Is(err, schedule.ErrZone) != c.ofZone {
				t.Errorf("%s: got %v", c.why, err)
			}
		})
	}
	for name, valid := range map[string]bool{
		"Europe/Berlin": true, "UTC": true, "": false, "local": false, "Mars/Olympus": false,
	} {
		if err := schedule.ValidateZone(name); (err == nil) != valid {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}

// What clocks skip does not run, what they repeat runs twice, as in CronJobs of Kubernetes.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct{ why, expression, zone, after, want string }{
		"zone inside": {
			why:        "the same",
			expression: "TZ=Asia/Shanghai 0 10 * * ?",
			after:      "2022-09-05T09:01:00Z",
			want:       "2022-09-06T02:00:00Z",
		},
		"strictly after": {
			why:        "a tick is not its own successor",
			expression: "0 10 * * *",
			after:      "2022-09-05T10:00:00Z",
			want:       "2022-09-06T10:00:00Z",
		},
		"a stepped star": {
			why:        "restricts, as a list does",
			expression: "0 0 */10 * FRI",
			after:      "2026-11-06T00:00:00Z",
			want:       "2026-11-11T00:00:00Z",
		},
		"half an hour": {
			why:        "Lord Howe moves by 30 minutes",
			expression: "15 2 * * *",
			zone:       "Australia/Lord_Howe",
			after:      "2026-10-03T00:00:00Z",
			want:       "2026-10-04T15:15:00Z",
		},
		"leap day": {"the next one", "0 0 29 2 *", "", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"never":    {"there is no such day", "0 0 31 2,4,6,9,11 *", "", "2026-03-01T00:00:00Z", ""},
		"every": {
			why:        "sub-seconds are dropped",
			expression: "@every 90s",
			after:      "2026-03-01T00:00:00.7Z",
			want:       "2026-03-01T00:01:30Z",
		},
		"a day of 23 hours": {
			why:        "midnight does not exist in Beirut",
			expression: "0 0 * * *",
			zone:       "Asia/Beirut",
			after:      "2026-03-28T12:00:00Z",
			want:       "2026-03-29T21:00:00Z",
		},
		"before the calendar": {"whatever is asked", "* * * * *", "", "0001-01-01T00:00:00Z", "0001-01-01T00:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, c.expression, c.zone).Next(at(c.after)); !got.Equal(at(c.want)) {
				t.Errorf("%s: got %s, want %s", c.why, got, c.want)
			}
		})
	}
	var none schedule.Schedule
	if now := at("2026-03-01T00:00:00Z"); !none.Next(now).IsZero() || !none.Latest(now.Add(-time.Hour), now).IsZero() {
		t.Error("a schedule that was not parsed has a tick")
	}
}
