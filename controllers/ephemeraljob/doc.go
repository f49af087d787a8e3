// Package ephemeraljob reconciles EphemeralJobs: ephemeral containers that run to their end in running pods, in some
// pods at a time.
//
//	r, err := ephemeraljob.New(mgr.GetClient(), ephemeraljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 10})
//
// A job goes through these phases, which are in its status:
//
//	               ┌─▶ Waiting   no pod matches, or no container has started
//	(new) ─────────┼─▶ Running   a container runs
//	               ├─▶ Unknown   some pods wait or have ended, and others are due
//	               └─▶ Paused    by the spec
//	          then ──▶ Succeeded the containers of all targets exited with 0, in as many pods as the job has replicas
//	               └─▶ Failed    all targets ended, and a container of one failed; or the deadline has passed
//	(unusable) ──────▶ Error     the selector or the template is empty or invalid
//
// Targets are the first pods that the selector selects, by creation time and name, as many as spec.replicas allows.
// Pods that have ended, pods that are being deleted, and pods with a container of another owner that has a name of the
// template, are none. Ownership is an environment variable with the UID of the job, which each container gets. The file
// state.go has the state of a pod for a job.
//
// # Laws
//
//   - The same input gives the same plan, in whatever order pods come. The input is not changed.
//   - A pod gets the containers once, whatever their state, and all of them in one write. The write tests the UID,
//     the deletion and the ephemeral containers that the plan has seen.
//   - After a reconcile, no more pods wait or run than the parallelism allows, unless more did before.
//   - A pod that refuses the containers uses no slot. It is tried again after a minute.
//   - A job that has ended stays as it is. No reconcile adds containers to it, to a paused job, or to one that is being
//     deleted.
//   - A job is reconciled at its deadline if it may fail by it, and at the end of its time to live. Both follow from
//     the status alone, whatever restarts in between.
//   - A reconcile of what the previous one has written and left sends no request.
//
// # Costs
//
// One write for each pod, and one of the status for each turn of its containers: added, running, ended. Turns that a
// reconcile sees together cost one. An event of a pod reconciles the jobs for which the state of the pod changes.
//
// # Refusals
//
// A pod for which the API server refuses the containers holds up no other pod. The reconciler tries the pod again
// after a minute. The event CreateFailed and the condition JobFailed report the answer.
//
// # Deletion
//
// A job has no finalizer: nothing can remove an ephemeral container from a pod. The first reconcile of a job of the
// reference removes the finalizer that the reference has added, so that the deletion of the job waits for no manager.
//
// A job with a spec that cannot work gets the condition JobError and the event InvalidSpec.
//
// When not to use it: for containers that must be stopped or run again. An ephemeral container ends by itself or with
// its pod, and is never restarted, changed or removed.
package ephemeraljob
