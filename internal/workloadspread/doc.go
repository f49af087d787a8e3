// Package workloadspread finds the WorkloadSpread of a pod, and records admissions in its status. The webhook of new
// pods and that of deletions share one Allocator.
//
//	allocator, err := workloadspread.FromManager(mgr, workloadspread.Options{})
//	...
//	// Nil leaves the pod as it is.
//	next, err := allocator.Admit(ctx, types.NamespacedName{Namespace: namespace, Name: uid}, pod)
//	allocator.Depart(ctx, pod) // after the deletion was admitted otherwise
//
// Each replica of the webhook has an Allocator. All pods that wait for one WorkloadSpread are given their subsets
// together, and recorded with one patch of the status that tests its resource version. While other replicas write the
// same status, an Allocator gathers pods for longer before it writes, so that writes become fewer and larger.
//
// Laws:
//   - A pod in a namespace without a WorkloadSpread costs one map lookup.
//   - No pod is rejected because of a race or a failed write: a pod that cannot be recorded gets a subset without a
//     limit, or is admitted as it is.
//   - A pod that is recorded was recorded in a status that no other writer had changed since it was read.
//   - The same admission request gets the same subset, and is recorded once.
//   - A pod of a StatefulSet gets its subset by its ordinal, without a read and without a record.
//   - A departure never fails, and waits no longer than its context.
//   - kruise-configuration is read where a WorkloadSpread has a target of a further kind, at most twice a minute. A
//     list that cannot be read leaves the last one in force.
//
// When not to use it: for decisions without a cluster, which package subset makes.
package workloadspread
