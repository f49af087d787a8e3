// Package podstate decides what a PersistentPodState records of the pods of a workload, and what a new pod of the same
// name gets of it: node selectors, preferred node affinity and annotations.
//
//	pass := podstate.Plan(podstate.Input{State: state, Workload: workload, Pods: pods, Nodes: nodes, Now: now})
//	// write pass.Status, then delete pass.Stuck
//	...
//	if steered := podstate.Steer(pod, state); steered != nil {
//		pod = steered // in admission
//	}
//
// Generate decides about the PersistentPodState that the annotations of a workload ask for.
//
// # Missing nodes
//
// A record whose required labels no node has is missing: a pod that was created by the record would not be scheduled.
// The record has missingSince then, and the condition TopologyAvailable is False. Where the annotation
// kruisekit.dev/release-missing-topology-after gives a duration, the required labels that no node has are dropped from
// the record after this time. Pods that were created before and wait for such a node are stuck, and are to be deleted.
//
// Laws:
//   - The same input gives the same pass, in any order of pods. The input is not changed.
//   - An applied pass gives the same status again, until a time that RequeueAfter reports.
//   - A pod that is not ready changes no record. A record with all wanted keys, of a ready pod on the same node, stays
//     as it is while any node has its required labels.
//   - With the policy WhenScaled, a record outside of the ordinals stays while its pod exists. While the replicas are
//     unknown every record stays.
//   - A steered pod is not steered again. Steer changes no key that the state does not name, and no required affinity.
//   - A PersistentPodState that the workload does not control is neither changed nor deleted by Generate.
//   - A pod is stuck at most once: only pods that are older than the release of their record are.
//
// When not to use it: for pods whose names change, as those of a CloneSet do; or where volumes already bind pods to
// nodes.
package podstate
