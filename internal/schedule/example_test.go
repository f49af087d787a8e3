package schedule_test

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/schedule"
)

// A nightly child whose predecessor still runs waits for it.
func ExamplePlan() {
	parsed, err := schedule.Parse("30 2 * * *", schedule.In{Zone: ptr.To("Europe/Berlin")})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := schedule.Input{
		Schedule: parsed, Concurrency: schedule.Forbid, Active: 1,
		Created: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Last: time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC),
		Now: time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC),
	}
	fmt.Println(schedule.Plan(in).Notes[0])
	in.Active, in.Now = 0, in.Now.Add(10*time.Minute)
	decision := schedule.Plan(in)
	fmt.Println(schedule.Name("backup", decision.Tick), "for", decision.Tick)
	fmt.Println("look again at", decision.Look)
	// Output:
	// JobAlreadyActive: the tick 2026-11-22T01:30:00Z waits until active children finish: 1
	// backup-1795311000 for 2026-11-22 01:30:00 +0000 UTC
	// look again at 2026-11-22 02:40:00 +0000 UTC
}

// Of the ticks that a process missed, the latest is found at once.
func ExampleSchedule_Latest() {
	parsed, err := schedule.Parse("*/5 * * * *", schedule.In{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(parsed.Latest(time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 22, 12, 3, 0, 0, time.UTC)))
	fmt.Println(parsed.Next(time.Date(2026, 11, 22, 12, 3, 0, 0, time.UTC)))
	// Output:
	// 2026-11-22 12:00:00 +0000 UTC
	// 2026-11-22 12:05:00 +0000 UTC
}

// An unknown zone is an error that a caller can distinguish.
func ExampleParse() {
	_, err := schedule.Parse("TZ=Mars/Olympus 0 10 * * *", schedule.In{})
	fmt.Println(err)
	_, err = schedule.Parse("* * *", schedule.In{})
	fmt.Println(err)
	// Output:
	// time zone: unknown time zone Mars/Olympus
	// expected exactly 5 fields, found 3: [* * *]
}

// The name of a child belongs to the tick.
func ExampleName() {
	fmt.Println(schedule.Name("backup", time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)))
	// Output: backup-1795311000
}
