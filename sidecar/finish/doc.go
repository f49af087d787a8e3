// Package finish decides how the sidecars of a pod that runs to its end are stopped once its main containers have finished, so
// that the pod, and the job that it is of, can end.
//
// A sidecar is a container that says so in its environment, see the package pub; all others are main containers. [Concerns] says
// whether the main containers of a pod have finished and sidecars have not, and [Decide] what to do then:
//
//	if !finish.Concerns(pod) {
//		return
//	}
//	plan := finish.Decide(finish.Input{Pod: pod, Node: node, Request: request, Now: now})
//	// write plan.Images, then plan.Status, then plan.Delete and plan.Create; tell plan.Event of what was written
//
// On a node with a daemon, a ContainerRecreateRequest stops sidecars; a container does not come back where the restartPolicy of
// its pod says so. On a virtual node, where there is no daemon, a sidecar gets another image, which exits at once.
//
// By default the phase of the pod is what all its containers make of it: a sidecar that exits with an error when it is stopped fails
// a pod with restartPolicy Never, and is started again under OnFailure. With KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, the
// pod gets the phase that its main containers give it, before that sidecar is stopped. That has a price, so it stays the
// user's choice: whoever reads the phase takes the resources of the pod for free while the sidecar still runs.
//
// Laws:
//   - The same input gives the same output, in whatever order the states of containers come. It is not changed.
//   - A carried out plan gives one that writes nothing, until the pod or the request changes, or RequeueAfter has passed.
//   - A container that is not a sidecar by its environment is never stopped, and neither is any while a main container may
//     run on or again.
//   - Sidecars whose exit code does not count are stopped after all others have ended.
//   - There is at most one request for a pod, always of the same name. It is replaced only when it has ended, or when all
//     containers that it names have.
//   - A request that ended without stopping a container is made again: soon at first, and then after as long as has passed since
//     the main containers finished, five minutes at most.
//
// Where the reference is left on purpose: a pod of sidecars alone is never finished, since nothing of it is main. The request for
// sidecars whose exit code does not count is made also where one for the others is still there. Failed requests are made
// again. A sidecar that has never started, of which nothing can be stopped, does not keep the others from being stopped.
// Containers that have a restartPolicy of their own finish by that. Init containers, native sidecars among them, are
// none of this package's business: the kubelet stops those.
//
// A sidecar with nothing but an image to be replaced by stays as it is on a node that has a daemon.
//
// When not to use it: for native sidecars.
package finish
