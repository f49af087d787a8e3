// Package sidecarset reconciles SidecarSets: it keeps their history, counts the pods that have them, and updates the
// images of their containers in running pods, in place and within a partition and a budget. A webhook injects new
// containers when pods are created.
//
//	r, err := sidecarset.New(mgr.GetClient(), sidecarset.Options{Namespace: "kruise-system"})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// One pass observes a snapshot, plans with package controllers/sidecarset/rollout, sends the changes, and reports. An
// index finds pods by the sets that they record, so that a pass costs what the pods of its set cost. A ledger returns
// own writes while the cache lags.
//
// A pod that is updated is written once, and its status once more if its condition does not report yet that the set can
// update the pod. Both writes test what they were decided upon: what another set wrote meanwhile is not lost, and the
// pod is observed and planned again.
//
// Departures from the reference:
//   - A pod that cannot be written, or that may not be updated, stops no other pod.
//   - An unfinished hot upgrade is completed also while updates are paused.
//   - Events report pods that cannot be updated when they are found, not at every pass. The reference does not emit
//     InvalidSpec, ContainersMissing, FailedUpdate and UpdateLimited, which is about updates without
//     progress.
//   - A deleted pod is not counted any more, whether or not its deletion was observed.
//   - Sets are reconciled when the labels of their namespaces change.
//
// When not to use it: without the webhook that injects, there is nothing to update.
package sidecarset
