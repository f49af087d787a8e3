// Package imagepull decides which images are pulled to which nodes before they are needed, and how. It takes the kinds
// ImagePullJob, ImageListPullJob and NodeImage as values, and returns what to write.
//
// From the user to the node:
//
//   - [PreDownload] returns the jobs that pull a revision's new images to the nodes of a workload's pods.
//   - [List] makes one job for each image of a list, and sums up how they do.
//   - [Secrets] brings the pull secrets of a job to where nodes may read them, and takes them away again.
//   - [Select] names the nodes of a job; [Request.Review] says how far it is, and which of them to tell next;
//     [Request.Tell] changes the NodeImage of one.
//   - [Maintain] keeps a NodeImage in line with its node, and with those who asked for its tags.
//   - [Work] says what a node pulls and stops; [Pull] is one tag on its way; [Keyring] knows how to log in.
//
// A reconciler of jobs is little more than this:
//
//	names, err := imagepull.Select(job, nodes, pods)
//	r := imagepull.Request{Job: job, Secrets: claim.References, Now: now, Random: rand.Uint32()}
//	plan, err := r.Review(nodeImages) // in the order of names
//	for _, name := range plan.Tell {
//		if told, err := r.Tell(byName[name]); told != nil {
//			// update it; after a conflict read it again and call Tell again
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
//   - The order of the input does not matter, unless it is one: pods and nodes pull in the order given, pull secrets and
//     images of a list are as the user ordered them.
//   - A converged input gives an empty plan, and a plan that is applied is not made again.
//   - No more nodes are told than may pull at once. A job that was lowered below what is under way tells none.
//   - Being told takes nothing away from others: no version goes back, no owner, secret or limit is lost. Others' pulls are
//     begun anew only where what they get is not enough.
//   - Every node counts once: what is desired is at least what succeeded, failed and is active together.
//   - Only what is known to be gone is dropped, and a tag that nobody owns stays until its time is over.
//   - Whatever the API server stores gives a plan, or an error that names the field; numbers that make no sense are
//     bounded, and noted.
//
// Where the reference is left on purpose: a tag is joined without a new round where that is enough, limits are merged, a
// node that lacks only a secret gets it at once and counts once at the deadline, a job of a list leaves with the list,
// and copies of secrets are plain.
//
// When not to use it: a job pulls through the node daemon of this project or of OpenKruise. Without one on the nodes nothing
// happens. An operator that has no daemon can run pods with the new image instead.
package imagepull
