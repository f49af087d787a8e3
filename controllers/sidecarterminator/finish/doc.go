// Package finish decides how the sidecars of a pod that runs to its end are stopped once its main containers have
// finished, so that the pod, and the job that it is of, can end.
//
// A sidecar is a container that declares so in its environment, see package pub; all others are main containers.
// [Concerns] reports whether the main containers of a pod have finished and sidecars have not, and [Next] returns the
// next step:
//
//	if !finish.Concerns(pod) {
//		return
//	}
//	action := finish.Next(finish.Input{Pod: pod, Node: node, Request: request, Now: now})
//	for _, w := range action.Writes {
//		... // send w, as with driver/runtimeclient; emit action.Event after the images, or after the creation
//	}
//
// On a node with a daemon, a ContainerRecreateRequest stops sidecars; a container does not come back where the
// restartPolicy of its pod rules that out. On a virtual node, where there is no daemon, a sidecar gets another image,
// which exits at once.
//
// By default the phase of the pod is what all its containers make of it: a sidecar that exits with an error when it is
// stopped fails a pod with restartPolicy Never, and is started again under OnFailure. With
// KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, the pod gets the phase that its main containers give it, before that
// sidecar is stopped. That has a price, so it stays the user's choice: schedulers and quotas count the resources of the
// pod as free while the sidecar still runs.
//
// Laws:
//   - The same input gives the same output, in whatever order the states of containers come. It is not changed.
//   - After an executed action the next one writes nothing, until the pod or the request changes, or RequeueAfter has
//     passed.
//   - A container that is not a sidecar by its environment is never stopped, and neither is any while a main container
//     may run on or again.
//   - Sidecars whose exit code does not count are stopped after all others have ended.
//   - There is at most one request for a pod, always of the same name. It is replaced only when it has ended, or when
//     all containers that it names have.
//   - A request that ended without stopping a container is made again: soon at first, and then after as long as has
//     passed since the main containers finished, five minutes at most.
//
// Departures from the reference: a pod of sidecars alone is never finished, because none of its containers is main. The
// request for sidecars whose exit code does not count is made also where one for the others is still there. Failed
// requests are made again. A sidecar that has never started, of which nothing can be stopped, does not keep the others
// from being stopped. Containers that have a restartPolicy of their own finish by that. Init containers, native
// sidecars among them, are none of this package's business: the kubelet stops those.
//
// A sidecar with nothing but an image to be replaced by stays as it is on a node that has a daemon.
//
// When not to use it: for native sidecars.
package finish
