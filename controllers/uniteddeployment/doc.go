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
// spread divides the replicas, and the workloads are rendered and compared. The plan in plan.go has the writes of what
// differs.
//
// As in the reference, a workload is updated when its revision, its replicas, its partition or its patch differ, and
// another revision or patch replaces its spec. Where the numbers alone differ, they alone are written, and other
// changes of the workload stay. A workload at rest costs no write. A pass reads no pod, except in a subset with
// schedule type Adaptive some of whose pods are not ready, with reservation, and in a StatefulSet whose update may be
// stuck.
//
// The reconciler takes up only workloads and revisions that the UnitedDeployment controls, by their owner references,
// and adopts none. A workload belongs to the subset in its selector, whatever its labels have become.
//
// A specification that cannot be met still has an allocation: package spread has the rules. The condition SubsetFailure
// has the reason.
package uniteddeployment
