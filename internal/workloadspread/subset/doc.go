// Package subset decides about the subsets of a WorkloadSpread: which subset a new pod gets, what the subset adds to
// the pod, which subset an existing pod belongs to, which pods are to be deleted first, and the status of each subset.
//
// Admission keeps the books in the status, and lists no pods:
//
//	limits, _ := subset.Limits(ws.Spec.Subsets, base)
//	books := subset.Open(ws, limits)
//	place := books.Admit(subset.Arrival{Version: version, ID: id}, now) // for each pod that waits
//	pod, err := subset.Inject(pod, place.Subset, subset.Match{Name: ws.Name, Subset: place.Subset.Name, UID: id})
//	// where books.Changed(), write books.Status() with the resource version of ws before the pods are admitted;
//	// after a conflict read ws again, and admit again
//
// The controller computes the status from the pods:
//
//	members := subset.Assign(subset.Assignment{Spread: ws, Limits: limits, Pods: pods, Version: version, Node: node})
//	seen := subset.Observation{Spread: ws, Limits: limits, Members: members, Newest: newest, Now: now}
//	report, costs := subset.Status(seen), subset.Costs(seen)
//
// A subset has max(0, limit - (active - deleting + creating)) places. Creating are the pods that were admitted and not
// observed yet; deleting are the active pods whose deletion was admitted.
//
// Laws:
//   - The same input gives the same output, and is not changed. The order of pods does not matter.
//   - Admissions through books never take more places than the status has. A subset beyond its limit has no places,
//     however many of its pods are deleted, until it is below.
//   - An arrival that is in the books gets its subset again, and changes nothing.
//   - A pod that no subset has a place for is admitted as it is, and never rejected.
//   - The status of an applied status is the same, until a time that RequeueAfter reports.
//   - The ranges of ordinals do not move when a subset becomes unschedulable.
//   - Whatever the API server stores gives a result, and what cannot be read gives a note.
//
// When not to use it: where each subset may be a workload of its own, see package spread; or where topology spread
// constraints of pods are enough.
package subset
