// Package workloadspread reconciles WorkloadSpreads: the status of each subset, the deletion costs of the pods, the
// pods that are older than the object, and, in the strategy Adaptive, the pods that find no node.
//
//	r, err := workloadspread.New(mgr.GetClient(), workloadspread.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package internal/workloadspread/subset decides; this package reads and writes. Admission keeps its books in the same
// status: a write here tests the resource version, so that no record of admission is overwritten. After a conflict the
// WorkloadSpread is reconciled again.
//
// # Costs
//
// Events of pods reconcile a second later, and once a second at most. A reconcile lists the pods of one target, and
// writes what differs: one patch of the status, and one of each pod whose deletion cost or annotation differs. Pods
// that admission has spread need no patch. Metadata of workloads is watched from the first WorkloadSpread on. A
// reconcile leaves out the pods whose annotation names another WorkloadSpread that selects them. While the target has
// pods of several versions, the ReplicaSets of these pods are read live, or the CloneSet.
//
// # What cannot be done
//
// Pods that run keep their spec: a changed subset concerns new pods. A WorkloadSpread has no finalizer, so that costs
// and annotations are removed from the pods only if the manager runs when the object is deleted. A percentage of
// unknown replicas takes no pods, and an event names the field.
//
// When not to use it: without the webhook of new pods, which gives them their subsets.
package workloadspread
