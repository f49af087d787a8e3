// Package broadcast decides about a BroadcastJob: a pod that runs to its end, once, on every node that fits.
//
//	pass, err := broadcast.Plan(broadcast.Input{Job: job, Pods: pods, Nodes: nodes, Now: now})
//	...
//	if pass.StatusFirst {
//		// write pass.Status before anything else
//	}
//	// delete pass.Delete and create pass.Create, then write what follows from the answers
//	status := pass.Conclude(created, deleted)
//	// look again after pass.RequeueAfter
//
// A job goes through these phases, which are in its status:
//
//	              ┌──────────▶ paused ◀──┐     (by the spec, or by a failed pod with failure policy Pause)
//	(new) ──▶ running ◀──────────┘       │
//	              ├──▶ completed               every node that fits has a pod that ended
//	              └──▶ failed                  the deadline has passed, or a pod failed with failure policy FailFast
//
// [Pass.Nodes] has the state of each node. A node that fits and has no pod is due; due nodes get their pods in the
// order of their names, as many as the parallelism allows.
//
// Laws:
//   - The same input gives the same pass, in whatever order nodes and pods come. The input is not changed.
//   - A node that has a pod gets no second one. The name of a pod follows from the job and the node, so that the API
//     server rejects a second one. Two pods that another controller has created on a node both stay.
//   - No pass creates a pod beyond the parallelism, on a node that does not fit, while the job is paused or deleted, or
//     after its end.
//   - A pod that ended is never deleted. A pod that runs is deleted when its node no longer matches or has a taint with
//     the effect NoExecute, or when the job fails. A pod that waits for the scheduler is deleted also when its node no
//     longer takes new pods.
//   - A pod that has restarted more often than the failure policy allows counts as failed, and the job waits for its
//     end. The end of the job deletes no such pod, for its log says why the job failed.
//   - The end of a job is written before pods are deleted for it, so that a restart in between neither loses the end
//     nor runs a node again.
//   - RequeueAfter is never later than the deadline of a job that runs, nor than the time to live of one that ended.
//     Both follow from the status alone, whatever restarts in between.
//   - A pass over what the previous pass has written and left is empty.
//
// When not to use it: for pods that must run for as long as a node exists, which is a DaemonSet, and for work that is
// not about nodes.
package broadcast
