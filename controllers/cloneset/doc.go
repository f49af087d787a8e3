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
// Own writes are read back through a ledger, so that a lagging cache makes no pod twice.
//
// When not to use it: for pods that need an order or a stable name, which are a StatefulSet's.
package cloneset
