// Package containerrestart decides how containers of a running pod are stopped, so that the kubelet restarts them: for
// a ContainerRecreateRequest, and when labels or annotations that feed their environment have changed.
//
// Three components process a request, and each calls one function. The functions have no side effects: they take the
// objects that the component has read, and return a plan.
//
//	r, faults := containerrestart.Admit(r, pod, node)          // the webhook completes a new request, or refuses it
//	plan := containerrestart.Supervise(containerrestart.Input{ // the manager keeps limits of time, and cleans up
//		Request: r, Pod: pod, Others: requests, Now: now,
//	})
//	action := containerrestart.Next(containerrestart.Work{     // the daemon on the pod's node stops containers
//		Request: r, Others: requests, Pod: pod, Containers: containers, Attempts: attempts, Now: now,
//	})
//	switch action.Verdict {
//	case containerrestart.DoWrite: // send action.Write.Data(), and look again
//	case containerrestart.DoKill:  // begin an attempt for action.Kill, and look again
//	case containerrestart.DoCancel, containerrestart.DoWait, containerrestart.DoNothing:
//	}
//
// A container of a request goes through these states, which are in the request's status:
//
//	                      ┌────(it ends again and again, or cannot be stopped)────▶ Failed
//	Pending ──(it ended)──┴──▶ Recreating ──(the next is ready, and has run for long enough)──▶ Succeeded
//
// The daemon sees in the runtime that a container is another than before, and in the request, where the manager copies
// it to, that it is ready. Requests of one pod run one after the other; [Queue] is their order.
//
// The daemon also calls [Describe]. It reports the running containers of a pod, which an in-place update waits for, and
// the containers whose environment is outdated. [Stale] reports whether the daemon must call Describe for a pod.
//
// The daemon carries out a [Kill] of Next and of Describe in the same way.
//
// Laws:
//   - The same input gives the same output, in whatever order containers and requests come. It is not changed.
//   - The result of a request that has ended does not change. Later writes only clean up after the request, and add the
//     result of a kill that it did not wait for.
//   - Two requests of one pod never run at once.
//   - A request stops at most one container of each name, also when the daemon restarts. With forceRecreate, the
//     request stops that container also when it is already a new one.
//   - A daemon may restart at any time, and its cache may lag: the request ends with the same result. A write fails
//     when another client has written the request since the plan.
//   - A plan that waits has a note with the reason. Every wait ends by itself, with two exceptions. The wait for a
//     container that never gets ready ends with the deadline of the request. So does the wait of a Recreating request
//     for a daemon that is gone.
//   - A pod that was taken out of traffic for a request is put back when the request ends or is deleted.
//
// Unlike the reference, native sidecars can be restarted. A hook may sleep, or send a request to the pod without naming
// a host. The first request of a pod never stays Pending. A new container that has ended six times is Failed.
//
// When not to use it: to start a container with another image or other resources, use the package inplace. Where the
// pod may be deleted instead, delete it.
package containerrestart
