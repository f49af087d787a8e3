// Package spread divides the replicas of one workload among subsets: zones, node pools, own nodes and rented ones.
//
//	allocation := spread.Allocate(spread.Input{
//		Replicas: ptr.To[int32](10),
//		Subsets:  []spread.Subset{{Name: "own", MaxReplicas: ptr.To(intstr.FromInt32(4))}, {Name: "rented"}},
//	})
//	// allocation.Replicas is [4 6]
//
// Allocate divides by shares (replicas), by bounds (minReplicas, maxReplicas), or adaptively: then a subset whose pods
// find no node gets no more than it can run, and later subsets run the rest. Schedule decides whether a subset counts
// as unschedulable, from the scheduling conditions of its pods. Reserve decides which pods are reserved: pods that wait
// for a node next to their substitutes. Partition returns how many pods of a subset stay on older revisions.
//
// Laws of Allocate:
//   - The allocation is deterministic, and has one number for each subset. No number is negative.
//   - The sum is the wanted number of replicas, wherever the specification allows that sum. Only reserved pods, and new
//     pods of a subset that has yet to prove itself, are added beyond the sum: they have substitutes.
//   - No subset gets more than its maximum, but for ready replicas of an unschedulable subset, which stay. A minimum is
//     met before any subset gets more than its own minimum, in the order of the subsets.
//   - With shares alone, the order of the subsets does not matter, and subsets without a share differ by at most one.
//     No other such division moves fewer replicas.
//   - With bounds, one replica more is one more in one subset, and no subset loses any.
//   - In mode Adaptive, no ready replica is taken away as long as the wanted number has room for all of them.
//   - A specification that cannot be met is reported in a note of the level Blocked, and still has an allocation.
//
// Laws of Schedule and Reserve: the order of the pods does not matter; a pod that is being deleted is neither stuck nor
// reserved; where time alone changes the verdict, RecheckAfter says when.
//
// When not to use it: to place pods of one workload on several domains without one workload for each; topology spread
// constraints of pods do that in the scheduler.
package spread
