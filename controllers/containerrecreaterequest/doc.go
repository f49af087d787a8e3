// Package containerrecreaterequest reconciles ContainerRecreateRequests: wishes to have containers of a running pod stopped, so
// that the kubelet starts them anew. Daemons on the nodes stop them; the reconciler keeps limits of time, takes pods out of
// traffic before and puts them back after, tells the daemon which new containers the API server knows, and cleans up.
//
//	r, err := containerrecreaterequest.New(mgr.GetClient(), containerrecreaterequest.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// What is done is decided in the package containerrestart; here is what it needs to see, and how its plans are carried out. It
// needs no webhook for itself, but a request that none has completed names no pod by its UID, and ends at once.
//
// Laws:
//   - A write that depends on what was seen fails when that has changed, and the pass begins anew. So neither a lagging cache
//     nor a daemon that writes at the same time is overwritten.
//   - What cannot be taken back is not done on the word of a cache: before a request ends because its pod has gone, and before
//     it lets go of a pod that it took out of traffic, the pod is read past it.
//   - A request that ends, or is deleted, has the others of its pod looked at, so that none waits for what is over.
//   - Without requests nothing is written, and an event of a pod costs one look into an index.
//
// A request that cannot be read, which can be stored where no webhook has refused it, ends with a message that says so.
//
// When not to use it: without daemons on the nodes. Each request would then end after a minute, and nothing restart.
package containerrecreaterequest
