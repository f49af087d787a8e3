// Package containermeta reports the containers of the container runtime in an annotation of their pod. It does so for
// the pods of its node that belong to a SidecarSet or to a workload of apps.kruise.io. It restarts containers whose
// environment comes from labels and annotations that were changed in place.
//
//	r, err := containermeta.New(mgr.GetClient(), node, runtimes.Found, containermeta.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// An in-place update waits for the annotation, apps.kruise.io/runtime-containers-meta. It has the IDs of the
// containers, and the hashes of their specs and environments. The reconciler writes the annotation through the status
// subresource, where the API server accepts changes of annotations. The daemon of a node therefore needs no permission
// to write pods themselves. The package containerrestart at the root selects the pods and the containers to restart,
// and computes the annotation.
//
// What holds:
//   - One write for each change of containers, none besides.
//   - A pod that changes in nothing that matters costs neither a call of the runtime nor one of the API server.
//   - The environment of a container's process is read once: with env -0, so that values of several lines are what they
//     are, and else with env. Where neither is to be had in a container, as in images without a shell, it is tried
//     again after ever longer pauses, and given up after an hour.
//   - A container is stopped only after the pod was read past the cache: one that has started with the newest values is
//     not stopped for older ones. While it is being stopped it is not stopped again. It is stopped three seconds after
//     the last change of what feeds it, for the kubelet to have seen that when it starts the next.
//   - A daemon that ends gives up what it is doing. The next one sees what is left to do.
//
// When not to use it: to restart containers without a change of the pod, create a ContainerRecreateRequest.
package containermeta
