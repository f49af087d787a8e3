// Package sidecarterminator stops the marked sidecars of pods that run to their end, once the main containers have
// finished. The pods may be of Jobs, BroadcastJobs or anything else.
//
//	r, err := sidecarterminator.New(mgr.GetClient(), sidecarterminator.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package controllers/sidecarterminator/finish decides; this package observes what the decision needs, and sends its
// writes. The daemons on the nodes stop the containers, as ContainerRecreateRequests ask them to; virtual nodes run
// another image.
//
// Laws:
//   - A pod whose main containers have not finished costs a look at its event.
//   - A write that depends on what was seen fails when that has changed, and another pass follows.
//   - The phase of a pod is written before the request for its last sidecars is: admission takes no request for a pod
//     that has ended, unless its condition says how.
//   - An event is made when a write has changed something, and only then.
//   - A request that ended without success wakes its pod, and is made again after a pause.
//
// When not to use it: for native sidecars, and without daemons on the nodes.
package sidecarterminator
