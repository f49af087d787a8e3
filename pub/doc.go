// Package pub decides about PodUnavailableBudgets: which budget guards a pod, whether one disruption of the pod fits
// into the budget, and what the status of the budget is.
//
// Admission reviews one disruption with the status alone, and lists no pods:
//
//	operation := pub.Effect(oldPod, newPod, subresource, policy) // or pub.Delete, pub.Evict
//	budget := pub.Match(oldPod, chain, budgets)                  // nil: no budget guards the pod
//	verdict := pub.Review(*budget, pub.Disruption{Pod: oldPod, Operation: operation, Policy: policy}, now)
//	switch {
//	case verdict.Reason == pub.Unsynced:
//		// no status of this generation yet: compute it with Recount, and review again
//	case !verdict.Allowed:
//		// deny with verdict.Text
//	case verdict.Record != nil:
//		// write budget.Spend(*verdict.Record) with the resource version of the budget, and admit; after a conflict
//		// read again and review again
//	}
//
// The controller computes the status from the pods, whose availability it may count one event at a time:
//
//	counts.Set(pod, policy) // for each event of a pod
//	result := pub.Recount(pub.Input{Budget: budget, Counts: counts, Total: pub.TotalOf(workloads), Now: now})
//	// write result.Status with the resource version of the budget, and look again after result.RequeueAfter
//
// A disruption that was admitted is a record in the status: the pod counts as unavailable until the record ends. A
// record ends when the pod terminates or finishes, after a time, and, for an update, as soon as the pod is observed
// updated and available.
//
// Laws:
//   - The same input gives the same output, and is not changed. The order of pods, budgets and workloads does not
//     matter.
//   - The pods that are unavailable through admitted disruptions never exceed the budget, also where several reviews
//     run at once on old copies of the status, as long as each write tests the resource version. Disruptions by exempt
//     users are outside of this law alone: they are admitted and recorded, and nothing else is admitted until the
//     budget has room again.
//   - Every verdict has a reason. A pod is refused for two reasons only: the budget is exhausted, or it has too many
//     records.
//   - A disruption of a pod that is unavailable, exempt, ignored or recorded already is admitted and spends nothing.
//   - Recount from counts equals Recount from pods. The Recount of an applied Recount changes nothing.
//   - A budget that cannot be computed, because of an unreadable amount or unknown replicas, protects nothing and has a
//     note.
//   - Whatever the API server stores gives a result.
//
// When not to use it: for evictions alone a PodDisruptionBudget of Kubernetes is enough.
package pub
