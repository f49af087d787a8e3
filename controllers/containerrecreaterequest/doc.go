// Package containerrecreaterequest reconciles ContainerRecreateRequests: requests to stop containers of a running pod,
// so that the kubelet restarts them. Daemons on the nodes stop the containers. The reconciler enforces time limits,
// takes pods out of traffic and puts them back, and cleans up. It also copies the state of new containers into the
// request, for the daemon.
//
//	r, err := containerrecreaterequest.New(mgr.GetClient(), containerrecreaterequest.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// What is done is decided in the package containerrestart; here is what it needs to see, and how its plans are carried
// out. It needs no webhook for itself, but a request that none has completed names no pod by its UID, and ends at once.
//
// Laws:
//   - A write that depends on an object fails when the object has changed since, and the reconciler starts the pass
//     again. A lagging cache therefore never overwrites the write of a daemon.
//   - Before a step that cannot be undone, the reconciler reads the pod past the cache. Such steps are to end a request
//     whose pod is gone, and to release a pod that is out of traffic.
//   - A request that ends, or is deleted, requeues the others of its pod, so that no request waits for one that has
//     ended.
//   - Without requests nothing is written, and an event of a pod costs one look into an index.
//
// A request that cannot be read, which can be stored where no webhook has refused it, ends with a message that says so.
//
// When not to use it: without daemons on the nodes. Each request would then end after a minute, and nothing restart.
package containerrecreaterequest
