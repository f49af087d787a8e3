// Package rollout decides how the pods that have a SidecarSet follow it: which of them get new images now, which end a hot
// upgrade, what their conditions say, and what the status of the set is. It takes the set and pods as values, and returns a plan.
//
//	plan, err := rollout.Compute(rollout.Input{
//		Set: set, Revision: "mesh-5d4f6c7b8", Pods: pods, Now: now,
//	})
//	for _, w := range plan.Update {
//		patch, err := w.Patch() // send it as a JSON patch
//		...
//	}
//	next, again := in.Follow(answers) // what the API server answered
//	// Likewise plan.Flip and plan.Mark. plan.Status is that of the set, plan.Notes say why the other pods wait.
//
// A pod belongs to a set that selects it, that it names, and whose containers it has; nothing is ever injected into it. Only
// images change, and the annotations that tell of them: a pod that lacks more of the set than that is told so, in
// its condition SidecarSetUpgradable, and waits for its successor.
//
// Pods go in the order of how little they are missed, then by priority, scattered by label. The partition stays as it is, and
// of those that are updated no more may be unready than the budget says. A pod that is not ready is updated free of charge:
// that is how a bad image is replaced.
//
// In a hot upgrade two containers change their parts. The one that is not at work gets the new image and is put to work; when
// it is ready, the plan flips the pod: the one from before gets the empty image.
//
// Laws:
//   - The same input gives the same plan, and is not changed. The order of the pods does not matter.
//   - No fewer pods are left as they are than the partition says, and no ready pod is updated while as many
//     updated ones are unready as may be. Where a bound is crossed already, no plan makes it worse.
//   - A plan that is carried out in part, in any order, is continued by the next. A converged set has an empty one.
//   - A pod that waits has a note. None waits for time alone, but for one whose update was refused: RequeueAfter then says until when.
//   - A write is of the pod that was looked at, and of no other that has taken its name, and does not undo what
//     another set has written meanwhile.
//   - Whatever the API server stores gives a plan; what cannot be read is an error beside it.
//
// Where the reference is left on purpose: Pods that no image can update count as kept by the partition. A spec that goes back
// while the new container of a hot upgrade does not work puts the old one to work again. Hot upgrades end also while updates are
// paused. What is recorded of an update is of the last one; a record that cannot be read holds up no later one. A pod whose set
// can update it again says so. Images are the same if they mean the same. Ties go by namespace and name.
//
// When not to use it: for new pods, which package sidecar is for.
package rollout
