// Package podwatch decides which changes of pods are worth a pass of the workload that controls them.
//
//	changes := podwatch.Changes(podwatch.Options{Policy: policy, Now: now})
//	b.Watches(&corev1.Pod{}, owned.By(group, kind), builder.WithPredicates(changes))
//
// When in doubt a change passes: a pass that finds nothing to do is cheap, and no other event makes up for one that was
// left out.
package podwatch
