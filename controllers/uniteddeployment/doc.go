// Package uniteddeployment reconciles UnitedDeployments: one workload in each of several subsets, as zones or node
// pools, and the replicas divided among the subsets.
//
//	r, err := uniteddeployment.New(mgr.GetClient(), uniteddeployment.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: an object without defaults behaves as a defaulted one. The workloads need their own reconcilers:
// controllers/cloneset and controllers/statefulset, or those of Kubernetes.
//
// One pass observes everything into a snapshot (observe.go). Package internal/subsets decides, without any I/O: package
// spread divides the replicas, and the workloads are rendered and compared. The pass in plan.go has the writes of
// what differs, with package applied, and what follows from their answers.
//
// A workload is written by server-side apply, so that fields of other writers stay. A workload that has what the subset
// asks for costs no write and no copy. A pass reads no pod, except in a subset with schedule type Adaptive some of
// whose pods are not ready, or with reservation, and in a StatefulSet whose update may be stuck.
//
// The reconciler takes up only workloads and revisions that the UnitedDeployment controls, by their owner references,
// and adopts none. A workload belongs to the subset in its selector, whatever its labels have become.
//
// A workload that another writer changes back again and again is written after growing pauses of up to five minutes.
//
// A specification that cannot be met still has an allocation: package spread has the rules. The condition SubsetFailure
// has the reason.
package uniteddeployment
