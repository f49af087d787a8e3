// Package podstates is an index of the PersistentPodStates of a cluster: by the workload that they refer to, and by the
// nodes of their records. The reconciler and admission each keep one.
//
//	index := podstates.NewIndex()
//	f := &watches.Follower{Kind: podstates.Kind(), Put: ..., Delete: ...} // calls index.Put and index.Delete
//	...
//	state := index.First(pod.Namespace, target) // nil where there is none
//
// An object that cannot be decoded is left out, and hides no other.
package podstates
