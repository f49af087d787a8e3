// Package containerrestart works on the ContainerRecreateRequests of a node: it stops the containers that they name, so that
// the kubelet starts others, and tells how far it is.
//
//	runtimes, err := cri.Detect(ctx, cri.Search{Root: "/run"}, cri.Options{})
//	...
//	r, err := containerrestart.New(mgr.GetClient(), node, runtimes.Found, containerrestart.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// All that is decided, the package of the same name at the root decides. Here it is carried out, one pod at a time: its requests,
// the pod and its containers are read, and each request is led on until it waits. Containers are stopped beside the
// workers, and what becomes of that comes back through the queue.
//
// What holds beyond the laws there:
//   - A daemon that ends gives up what it is doing, and tells nothing of it: the next one looks again. A hook may run twice so.
//   - A stop that was begun goes on when its request ends early, and its result is written to the request still. It is given
//     up when the request or the pod is deleted.
//   - A runtime that is away for half a minute fails nothing.
//   - Where nothing is under way, neither the runtime nor the API server is asked anything.
//   - A request for one container costs three writes: that it has begun, that the container has stopped, and that it has ended.
//     Each further container costs two at most.
//
// The manager's part, limits of time and readiness among it, is in controllers/containerrecreaterequest.
//
// When not to use it: for restarts that follow from a change of the pod, which are for daemon/containermeta.
package containerrestart
