// Package schedule decides when a workload on a schedule creates its next child, and for which tick. A tick is a time
// that the schedule matches.
//
//	parsed, err := schedule.Parse("30 2 * * *", schedule.In{Zone: ptr.To("Europe/Berlin")})
//	...
//	decision := schedule.Plan(schedule.Input{
//		Schedule: parsed, Created: created, Last: last, Concurrency: schedule.Forbid, Active: len(active), Now: now,
//	})
//	if !decision.Tick.IsZero() {
//		// create the child schedule.Name(owner, decision.Tick), then record the tick as last
//	}
//	// decide again at decision.Look
//
// The language and the ticks are those of the standard parser of github.com/robfig/cron/v3, which the CronJobs of
// Kubernetes have as well. A time of the day that clocks skip has no tick on that day. A time of the day that clocks
// repeat has two. The parser skips some days on which clocks change at midnight, as in Beirut.
//
// If both day fields are restricted, a day that matches one of them suffices; a star restricts nothing. A star with a
// step above 1, as "*/10", restricts as a list does: version 3.0.1 of the parser decides so, which the reference and
// the CronJobs of Kubernetes have, and Schedule keeps to it. In other crons such a star is a star.
//
// Laws:
//   - Plan is deterministic, and changes nothing. Time is input.
//   - A tick is after Last, or after Created where Last is zero, and not after Now. So a caller that records Last has
//     one child for a tick.
//   - Last does not decrease, except where Last is more than MaxAhead after Now: then the clock was wrong, and Last
//     becomes Now.
//   - Of several missed ticks only the latest is due. The number of missed ticks costs little.
//   - Of more than MaxMissed missed ticks none is due: a schedule that has stood still for so long continues with its
//     next tick.
//   - Look is after Now, and at most MaxWait later, unless the schedule is paused. So a clock that jumps delays a child
//     by MaxWait at most.
//   - A tick that Concurrency holds back stays due until a later tick replaces it, or its deadline passes.
//   - Parse accepts or rejects every text, without a panic.
//
// When not to use it: to run functions of a process on a schedule.
package schedule
