// Package scale is the arithmetic of rollouts: how many instances to create, delete and update, and in which order.
//
// An instance is what is scaled as one: a pod, or a group of pods that live and die together. The functions work on
// counts and on any type of item; who is which is the caller's knowledge.
//
//	partition, err := scale.Partition(spec.Partition, replicas)
//	...
//	d := scale.Differ(old, updated, scale.Limits{Replicas: replicas, Partition: partition, ...})
//	// create d.Create, of which d.CreateOld at the old revision; delete d.Delete; update d.Update, in the order of
//	err = scale.Prioritise(candidates, labelsOf, spec.PriorityStrategy)
//	candidates = scale.Scatter(candidates, all, labelsOf, spec.ScatterStrategy)
//
// Laws:
//   - Integer arithmetic only: 14% of 50 is 7.
//   - What is created never crosses the surge, what is deleted never leaves fewer than wanted, and both never happen
//     at once.
//   - A converged input gives the zero Difference.
//   - Sorting is stable, keeps every item, and does not depend on anything but the items and their order.
//
// When not to use it: for workloads whose instances have identities of their own, such as the ordinals of a
// StatefulSet, only the amounts and the order apply; the difference is theirs to make.
package scale
