// Package broadcastjob reconciles BroadcastJobs: a pod that runs to its end, once, on every node that fits.
//
//	r, err := broadcastjob.New(mgr.GetClient(), broadcastjob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a job without defaults behaves as a defaulted one. A job goes through these phases, which are in
// its status:
//
//	              ┌──────────▶ paused ◀──┐     (by the spec, or by a failed pod with failure policy Pause)
//	(new) ──▶ running ◀──────────┘       │
//	              ├──▶ completed               every node that fits has a pod that ended
//	              └──▶ failed                  the deadline has passed, or a pod failed with failure policy FailFast
//
// A node that fits and has no pod is due; due nodes get their pods in the order of their names, as many as the
// parallelism allows. The file nodes.go surveys nodes and pods, and end.go has the end of a job.
//
// Laws:
//   - The same input gives the same plan, in whatever order nodes and pods come. The input is not changed.
//   - A node that has a pod gets no second one. The name of a pod follows from the job and the node, so that the API
//     server rejects a second one. Two pods that another controller has created on a node both stay.
//   - No reconcile creates a pod beyond the parallelism, on a node that does not fit, while the job is paused or
//     deleted, or after its end.
//   - A pod that ended is never deleted. A pod that runs is deleted when its node no longer matches or has a taint with
//     the effect NoExecute, or when the job fails. A pod that waits for the scheduler is deleted also when its node no
//     longer takes new pods.
//   - A pod that has restarted more often than the failure policy allows counts as failed, and the job waits for its
//     end. The end of the job deletes no such pod, for its log says why the job failed.
//   - The end of a job is written before pods are deleted for it, so that a restart in between neither loses the end
//     nor runs a node again.
//   - A job is reconciled at its deadline, and at the end of its time to live. Both follow from the status alone,
//     whatever restarts in between.
//   - A reconcile of what the previous one has written and left sends no request.
//
// A reconcile costs one write for each pod that it creates or deletes, and one for the status if it changes. A node
// that comes, leaves, or changes in its labels, taints, cordon or room reconciles the jobs that have not ended.
// Heartbeats and the progress of containers reconcile none.
//
// The name of a pod follows from its job and its node. A pod that an earlier process has created, and that the cache
// does not show yet, is found by its name.
//
// A job with a spec that cannot be used is left as it is, with an event (InvalidSpec), until the spec changes. A pod of
// another owner that has the name of a pod of the job is an event (FailedCreate); the other nodes go on.
//
// When not to use it: for pods that must run for as long as a node exists.
package broadcastjob
