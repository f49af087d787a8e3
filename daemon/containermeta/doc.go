// Package containermeta tells, on each pod of a node that somebody updates in place, what the container runtime knows of its
// containers, and starts those anew whose environment comes from labels and annotations that were changed in place.
//
//	r, err := containermeta.New(mgr.GetClient(), node, runtimes.Found, containermeta.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// What is told is the annotation apps.kruise.io/runtime-containers-meta, which an in-place update waits for: the IDs of the
// containers, and the hashes of what they were made from. It is written through the status of the pod, where the API
// server accepts changes of annotations: a node's daemon needs no right to write pods themselves. Which pods, what is told and what
// starts anew, the package containerrestart at the root decides.
//
// What holds:
//   - One write for each change of containers, none besides.
//   - A pod that changes in nothing that matters costs neither a call of the runtime nor one of the API server.
//   - The environment of a container's process is read once: with env -0, so that values of several lines are what they are,
//     and else with env. Where neither is to be had in a container, as in images without a shell, it is tried again after ever
//     longer pauses, and given up after an hour.
//   - A container is stopped only after the pod was read past the cache: one that has started with the newest values is not
//     stopped for older ones. While it is being stopped it is not stopped again. It is stopped three seconds after the last
//     change of what feeds it, for the kubelet to have seen that when it starts the next.
//   - A daemon that ends gives up what it is doing. The next one sees what is left to do.
//
// When not to use it: for containers that are to start anew for no change of the pod, which are ContainerRecreateRequests.
package containermeta
