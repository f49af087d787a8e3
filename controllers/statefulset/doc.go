// Package statefulset reconciles Advanced StatefulSets: pods with a stable name, ordinal and claims of their own,
// updated in place where possible, within a partition and a budget.
//
//	r, err := statefulset.New(mgr.GetClient(), statefulset.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a StatefulSet without defaults behaves as a defaulted one. Two reconcilers in one process do not
// share state.
//
// One pass observes everything into a snapshot (observe.go), plans with package workload over the slots of the ordinals
// that are wanted (plan.go, build.go for new pods and their claims), sends the writes, and reports (status.go,
// events.go). Package workloads has what all workloads share of this. The plan reads nothing but the snapshot and the
// options.
//
// A pod waits for a claim that terminates, or that belongs to an earlier pod of its name, with a note; the deletion of
// the claim reconciles the set. Other pods are still updated. Where the retention policy deletes claims, a claim refers
// to its pod before the pod is deleted, else the pod stays. A pod that lacks a volume of a claim template is recreated
// within the budget of updates.
//
// The update revision becomes the current one when as many pods as wanted exist, are updated and are ready; never at 0
// replicas with a partition.
//
// A spec that no webhook has rejected is validated by package validation. A fault in the selector, the replicas, the
// template or the ordinals leaves the pods as they are, with a condition and an event. A fault elsewhere is reported,
// and the default is used.
//
// Without Options.StartOrdinal, spec.ordinals.start counts as 0. Pods that begin at the start all the same, as those of
// a built-in StatefulSet, are neither adopted nor deleted: the set stays as it is, with a condition and an event,
// unless it has pods below the start.
//
// With volumeClaimUpdateStrategy OnPodRollingUpdate and Options.ExpandClaims, claims grow within the partition and the
// budget of updates, each before its pod is updated. A claim whose storage class does not allow that is reported, and
// keeps no other pod from its turn. A pod whose node does not grow a mounted file system within two minutes is
// recreated.
//
// Not supported: ordered updates of more than one pod at once. maxUnavailable is 1 with OrderedReady, as the API
// promises.
package statefulset
