// Package ephemeral decides about an EphemeralJob: ephemeral containers that run to their end in running pods, in some
// pods at a time.
//
//	pass := ephemeral.Plan(ephemeral.Input{Job: job, Pods: pods, Refused: refused, Now: now})
//	...
//	err := driver.Run(ctx, pass, driver.Options[*write.Write]{Send: send})
//	outcome := pass.Conclude()
//	// write outcome.Status, keep outcome.Refused for the next pass, and look again after pass.RequeueAfter()
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
// template, are none. Ownership is an environment variable with the UID of the job, which each container gets.
//
// Laws:
//   - The same input gives the same pass, in whatever order pods come. The input is not changed.
//   - A pod gets the containers once, whatever their state, and all of them in one write. The write tests the UID, the
//     labels that the selector reads, the deletion and the ephemeral containers that the plan has seen.
//   - After a pass, no more pods wait or run than the parallelism allows, unless more did before.
//   - A pod that refuses the containers uses no slot. It is tried again after a while, and after all pods that have not
//     refused.
//   - A job that has ended stays as it is. No pass adds containers to it, to a paused job, or to one that is being
//     deleted.
//   - RequeueAfter is never later than the deadline of a job that may fail by it, nor than the time to live of one that
//     ended. Both follow from the status alone, whatever restarts in between.
//   - A pass over what the previous pass has written and left is empty.
//
// When not to use it: for containers that must run again. An ephemeral container is never restarted, changed or
// removed.
package ephemeral
