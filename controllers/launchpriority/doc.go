// Package launchpriority lets the containers of pods start in their order: those of a higher priority first, and the
// next when they are ready.
//
//	r, err := launchpriority.New(mgr.GetClient(), launchpriority.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})
//
// The package launch decides, and webhooks/pod injects the barriers at admission; this package reads the barrier and
// writes the plan.
//
// Laws:
//   - ConfigMaps are neither watched nor listed. A pass reads the barrier of its pod live.
//   - A pod without an order, or that is up, costs one look at its event. Each change of a pod that waits reconciles.
//   - A write fails if the pod or its barrier was replaced, and the pass starts again.
//   - The barrier of a former pod of the same name is deleted only after a live read of the pod.
//   - The reconciler emits no events: which container waits for which is logged at level 1.
//
// When not to use it: for pods with native sidecars alone. The kubelet orders those.
package launchpriority
