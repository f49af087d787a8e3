// Package sidecarset reconciles SidecarSets: it keeps their history, counts the pods that have them, and brings new images to
// the containers that are in running pods, in place and within a partition and a budget. New containers come into
// pods at their creation, by a webhook.
//
//	r, err := sidecarset.New(mgr.GetClient(), sidecarset.Options{Namespace: "kruise-system"})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// One pass observes everything into a snapshot, decides with package sidecar/rollout, writes, and reports. Pods are found by an
// index of the sets that they name, so that a pass costs what the pods of its set cost. Own writes are read back through a
// ledger.
//
// A pod that is updated is written once, and its status once more where its condition does not say yet that the set can update
// it. Both writes are refused when the pod is another one of the same name. What another set wrote on the pod meanwhile is not
// lost: the write is refused, the pod looked at again, and another write made.
//
// In these the reconciler departs from the reference:
//   - A pod that cannot be written, or that nobody may update, does not keep others from it.
//   - A hot upgrade in its middle is brought to its end also while updates are paused.
//   - Events tell of pods that cannot be updated when they are found, not at every pass. InvalidSpec, FailedUpdate
//     and UpdateLimited, of updates that stand still, are not among the reference's.
//   - A pod that goes is not counted any more, whether or not it was seen to go.
//   - A set whose namespaces change their labels is looked at.
//
// When not to use it: without the webhook that injects, there is nothing to update.
package sidecarset
