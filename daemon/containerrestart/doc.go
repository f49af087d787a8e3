// Package containerrestart carries out the ContainerRecreateRequests of a node. It stops the containers that they name,
// so that the kubelet restarts them, and reports the progress in the status of the requests.
//
//	runtimes, err := cri.Detect(ctx, cri.Search{Root: "/run"}, cri.Options{})
//	...
//	r, err := containerrestart.New(mgr.GetClient(), node, runtimes.Found, containerrestart.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// The package of the same name at the root makes all decisions. The reconciler carries them out, one pod at a time. It
// reads the requests, the pod and its containers, and continues each request until it waits. Containers are stopped
// outside of the workers. The result of a stop requeues the pod.
//
// What holds beyond the laws there:
//   - A daemon that ends cancels its stops and writes no result for them. The next daemon reads the requests again. A
//     hook may therefore run twice.
//   - A stop that was begun goes on when its request ends early, and its result is written to the request still. It is
//     given up when the request or the pod is deleted.
//   - A runtime that is away for half a minute fails nothing. It is asked again every few seconds.
//   - Where nothing is under way, neither the runtime nor the API server is asked anything.
//   - A request for one container costs three writes: that it has begun, that the container has stopped, and that it
//     has ended. Each further container costs two at most.
//
// The manager's part, limits of time and readiness among it, is in controllers/containerrecreaterequest.
//
// When not to use it: for restarts that follow from a change of the pod, which are for daemon/containermeta.
package containerrestart
