// Package rollout decides how the pods that have a SidecarSet follow it: which pods get new images now, which end a hot
// upgrade, what their conditions report, and the status of the set. It takes the set and pods as values, and returns a
// pass.
//
//	pass, err := rollout.Plan(rollout.Input{
//		Set: set, Revision: "mesh-5d4f6c7b8", Pods: pods, Now: now,
//	})
//	for changes := pass.Next(); len(changes) > 0; changes = pass.Next() {
//		for len(changes) > 0 {
//			c := changes[0]
//			pod, err := ... // send &c.Write, as with driver/runtimeclient
//			changes = append(changes[1:], pass.Answer(c, pod, err)...)
//		}
//	}
//	// pass.Status() is the status of the set, pass.Notes() are the reasons why other pods wait.
//
// A pod belongs to a set that selects the pod, that the pod records, and whose containers the pod has. Nothing is
// injected into pods. Only images change, and the annotations that record them. A pod that lacks more of the set than
// images gets a False condition SidecarSetUpgradable, and waits for its successor.
//
// Pods are updated in the order of their standing, then by priority, scattered by label. The partition stays old, and
// no more updated pods may be unready than the budget allows. A pod that is not ready costs no budget: a bad image is
// replaced that way.
//
// A hot upgrade swaps two containers. The container that does not work gets the new image and becomes the working one;
// when it is ready, the plan resets the former one to the empty image.
//
// Laws:
//   - The same input gives the same plan, and is not changed. The order of the pods does not matter.
//   - No fewer pods stay old than the partition says, and no ready pod is updated while as many updated pods are
//     unready as the budget allows. Where a bound is crossed already, no plan makes it worse.
//   - A plan that is executed in part, in any order, is continued by the next. A converged set has an empty plan.
//   - A pod that waits has a note. No pod waits for time alone, except one whose update was refused: RequeueAfter
//     reports until when.
//   - A change tests the UID of the pod and each annotation, image and condition that it was decided upon. A failed
//     test is no failure: the pod is observed and planned again.
//   - A refused change stops no other. Each pass makes a bounded number of changes, whatever the answers are.
//   - Whatever the API server stores gives a plan; what cannot be read is an error next to it.
//
// Departures from the reference: pods that no image can update count as kept by the partition. A spec that is rolled
// back while the new container of a hot upgrade does not work makes the former one the working one. Hot upgrades end
// also while updates are paused. The record of an update is of the last one; a record that cannot be read stops no
// later update. A pod whose set can update it again reports so. Images are equal if they mean the same. Ties are
// decided by namespace and name.
//
// When not to use it: for new pods, which package sidecar is for.
package rollout
