// Package launchpriority lets the containers of pods start in their order: those of a higher priority first, and the next when
// they are ready.
//
//	r, err := launchpriority.New(mgr.GetClient(), launchpriority.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})
//
// What is done is decided in the package launch, and what pods need for it is put into them at their admission; here is what
// the decision needs to see, and how it is carried out.
//
// Laws:
//   - ConfigMaps are neither watched nor listed. The barrier of a pod is read once, past the cache; from then on the answers
//     to writes tell what is in it, until the kubelet misses what should be there.
//   - A pod that nobody has undertaken to order, or that is up, costs a look at its event.
//   - A write fails when the pod or its barrier has been replaced meanwhile, and the pass begins anew.
//   - The barrier of a former pod of the same name is deleted only after the API server has said which pod is there now.
//   - No events are made: what waits, and for what, is in the log at level 1.
//
// When not to use it: for pods with native sidecars alone. The kubelet orders those.
package launchpriority
