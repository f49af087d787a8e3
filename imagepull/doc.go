// Package imagepull decides which images are pulled to which nodes before they are needed, and how. It takes the kinds
// ImagePullJob, ImageListPullJob and NodeImage as values, and returns what to write.
//
// From the user to the node:
//
//   - [PreDownload] returns the jobs that pull a revision's new images to the nodes of a workload's pods.
//   - [List] plans one job for each image of a list, and the status of the list.
//   - [PlanCopy] plans the copy of a pull secret in the namespace that nodes may read, and its deletion.
//   - [Select] returns the nodes of a job. [Request.Review] returns the status of the job and the NodeImages to update
//     next. [Request.Apply] adds the job to one NodeImage.
//   - [Maintain] plans the creation, the updates and the deletion of a NodeImage.
//   - [Work] plans which pulls a node starts and stops. [Pull] is the pull of one tag. [Keyring] selects credentials.
//
// A reconciler of jobs is little more than this:
//
//	nodes, err := imagepull.Select(job, nodeImages, pods) // in the order in which they pull
//	r := imagepull.Request{Job: job, Secrets: references, Now: now, Random: rand.Uint32()}
//	plan, err := r.Review(nodes)
//	for _, name := range plan.Update {
//		if changed, err := r.Apply(byName[name]); changed != nil {
//			// update it; after a conflict read it again and call Apply again
//		}
//	}
//	// write plan.Status if it differs, look again after plan.RequeueAfter
//
// And a node's process:
//
//	plan := imagepull.Work(nodeImage, pulls) // stop plan.Stop, go on with plan.Keep, and begin plan.Start:
//	pull, turn := pull.Next(now)             // try within turn.Timeout, or wait for turn.Wait
//	pull = pull.Fail(err.Error(), now)       // or Succeed; then call Work again, and write plan.Status if it differs
//
// Laws:
//   - The same input gives the same output, and is not changed. Time and randomness are input.
//   - The order of the input does not matter, unless it is one: pods and nodes pull in the order given, pull secrets
//     and images of a list are as the user ordered them.
//   - A converged input gives an empty plan. The plan after an applied plan does not repeat its writes.
//   - A job adds itself to no more nodes than may pull at once. A job whose parallelism is lowered below its active
//     pulls adds itself to none.
//   - Apply takes nothing from other jobs: no version decreases, and no owner, secret or limit is removed. Apply
//     restarts the pull of another job only where its result is not enough for this job.
//   - Every node counts once: desired is at least the sum of succeeded, failed and active.
//   - Maintain drops an owner or a secret only when the caller reports it gone. A tag that never had an owner stays
//     until its TTL has passed.
//   - Whatever the API server stores gives a plan, or an error that names the field; numbers that make no sense are
//     bounded, and noted.
//
// Where the reference is left on purpose: a tag is joined without a new round where that is enough, limits are merged,
// a node that lacks only a secret gets it at once and counts once at the deadline, a job of a list leaves with the
// list, and copies of secrets are plain.
//
// When not to use it: a job pulls through the node daemon of this project or of OpenKruise. Without one on the nodes
// nothing happens. An operator that has no daemon can run pods with the new image instead.
package imagepull
