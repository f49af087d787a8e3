// Package cloneset reconciles CloneSets: a number of interchangeable pods with volume claims of their own, updated in place
// where possible, within a partition and a budget.
//
//	r, err := cloneset.New(mgr.GetClient(), cloneset.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a CloneSet without defaults behaves as a defaulted one. Two reconcilers in one process do not
// know of each other.
//
// One pass observes everything into a snapshot, decides with the packages revision, scale, inplace and lifecycle, writes,
// and reports. It either changes the number of pods or leads updates on, and continues with the next pass.
// Own writes are read back through a ledger, so that a lagging cache makes no pod twice; before the first creation for a set
// its pods are read past the cache once, so that neither does a restart.
//
// What cannot be done is told in a condition (FailedScale, FailedUpdate) and an event, and tried again after ever longer
// pauses, of a minute at most. A spec that cannot work at all, where no webhook has refused it, leaves the set as it is until
// it changes. Its event, InvalidSpec, is not among the reference's.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - Pods that have finished, as evicted ones, are deleted, unless their preDelete hook holds them. Their claims serve the
//     successor where claims are reused.
//   - A pod that is updated in place before its preNormal hook has let it become Normal waits for the hook afterwards. But
//     if its inPlaceUpdate hook holds it first, it does not.
//   - The clock of progressDeadlineSeconds starts with a rollout, its resumption, and another revision.
//   - With OnDelete and no block of budgets, one pod that was chosen for deletion goes even where a fifth of all is none.
//
// When not to use it: for pods that need an order or a stable name, which are a StatefulSet's.
package cloneset
