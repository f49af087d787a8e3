// Package cloneset reconciles CloneSets: a number of interchangeable pods with volume claims of their own, updated in
// place where possible, within a partition and a budget.
//
//	r, err := cloneset.New(mgr.GetClient(), cloneset.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a CloneSet without defaults behaves as a defaulted one. Two reconcilers in one process do not
// share state.
//
// One pass observes everything into a snapshot (observe.go), plans with package workload (plan.go, build.go for new
// pods and claims, and claims.go for who owns claims), sends the writes, and reports (status.go, events.go). The plan
// reads nothing but the snapshot and the options. Package workloads has what all workloads share of this. A ledger
// returns the reconciler's own writes while the cache lags, so that no pod is created twice. Before the first creation
// for a set the reconciler reads the pods past the cache once, and before the first deletion or update the metadata of
// the set, which covers a restart.
//
// A write that fails is reported in a condition, FailedScale or FailedUpdate, and in an event. The reconciler retries
// after growing pauses of at most a minute. Each failure concerns one pod; the others continue. A pod whose claim name
// is taken, by a claim that terminates or that is not the pod's, waits for the name, with an event.
//
// A spec that no webhook has rejected is validated by package validation. A fault in the selector, the replicas or the
// template leaves the set as it is until the spec changes. Any other fault has a safe reading: a bound that cannot be
// parsed is as if it were not set, and scaleStrategy.maxUnavailable "5" is 5%. The first fault is reported in a
// condition and in an event InvalidSpec.
//
// A set that stands still reports why in the condition Stalled: at once where it is blocked until an object changes, as
// by an image that cannot be pulled, and after a minute where it waits. Neither that condition nor InvalidSpec exists
// in the reference.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - Pods that have finished, as evicted ones, are deleted, unless their preDelete hook holds them. Their claims serve
//     the successor where claims are reused.
//   - The claims of a pod that the set deletes belong to the pod, as do those of a pod that the selector no longer
//     matches: they are handed over first, and the garbage collector deletes them with the pod. No other pod gets them,
//     whatever fails.
//   - A pod that is updated in place before its preNormal hook has let it become Normal waits for the hook afterwards.
//     But if its inPlaceUpdate hook holds it first, it does not.
//   - A pod that a hook holds before its update goes back to Normal where the partition is raised over it.
//   - The clock of progressDeadlineSeconds starts with a rollout, its resumption, and another revision.
//   - With OnDelete and no block of budgets, one pod that was chosen for deletion goes even where a fifth of all is
//     none.
//
// When not to use it: for pods that need an order or a stable name, which are a StatefulSet's.
package cloneset
