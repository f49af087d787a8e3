// Package budgets decides about disruptions of pods by the PodUnavailableBudgets of a cluster, and commits what it
// admits to their statuses. The webhooks of pods and the reconcilers of workloads share one Guard.
//
//	guard, err := budgets.FromManager(mgr, budgets.Options{Policy: policy})
//	...
//	decision, err := guard.Review(ctx, budgets.Disruption{Pod: pod, Operation: pub.Evict, User: user})
//
// An Index follows the budgets. Disruptions under one budget that arrive while a write of its status is under way are
// decided together upon the answer of that write, and committed with one write, as package groupcommit does.
//
// Laws:
//   - A pod of a namespace without a budget costs one map lookup.
//   - A disruption that is admitted and recorded was recorded in a status that no other writer had changed since it was
//     read.
//   - A disruption that spends costs at most one write. Nothing is read live but after a conflict, which ends no
//     review: the review is made again with the live budget until its context ends.
//   - A state that the cache does not show within a minute is read live, once a minute, and that read counts, whatever
//     its version: versions go back where etcd is restored to an older version.
//   - A disruption by an exempt user is admitted and recorded, with or without room. It waits two seconds at most for
//     its record, and is admitted without the record where the write fails.
//   - A dry run is decided as any other, and writes nothing.
//   - A budget that is deleted meanwhile admits.
//   - What a Guard keeps of a budget is freed when the cache shows it.
//
// When not to use it: for decisions without a cluster, which package pub makes.
package budgets
