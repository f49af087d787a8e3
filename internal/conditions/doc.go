// Package conditions keeps the conditions of a status, whatever Go type the kind has for them, and decides about those
// that all workloads report.
//
//	list := conditions.List{...}                                     // converted from the conditions of the kind
//	list.SetError("FailedScale", err, now)                           // removed without an error
//	after := conditions.Stall(&list, conditions.Stalling{...})       // why the workload stands still
//	...
//	b.For(object, builder.WithPredicates(conditions.IgnoreRewording("FailedScale", "FailedUpdate")))
//
// Times and texts change only together with what they are about, so that a condition that stays the same costs no
// write. A condition that changes moves to the end of the list.
package conditions
