// Package containerrestart decides how containers of a running pod are stopped, so that the kubelet starts them anew: for a
// ContainerRecreateRequest, and when labels or annotations that feed their environment have changed.
//
// Three parties work on a request, and each has one verb. None of the verbs does anything: they take what the party
// sees, and say what to do.
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
//	case containerrestart.DoKill:  // begin an attempt for each of action.Kills, and look again
//	case containerrestart.DoCancel, containerrestart.DoWait, containerrestart.DoNothing:
//	}
//
// A container of a request goes through these states, which are in the request's status:
//
//	                      ┌────(it ends again and again, or cannot be stopped)────▶ Failed
//	Pending ──(it ended)──┴──▶ Recreating ──(the next is ready, and has run for long enough)──▶ Succeeded
//
// The daemon sees in the runtime that a container is another than before, and in the request, where the manager copies it
// to, that it is ready. Requests of one pod run one after the other; [Queue] is their order.
//
// [Describe] is for the daemon also: it tells what runs in a pod, which an in-place update waits for, and which
// containers have an environment from before. [Stale] says when to ask it.
//
// What follows from a [Kill] is the same for both.
//
// Laws:
//   - The same input gives the same output, in whatever order containers and requests come. It is not changed.
//   - A request that has ended stays as it ended, and gets nothing but what is needed to clean up after it, and the result
//     of a kill that it did not wait for.
//   - Two requests of one pod are never at work at once.
//   - No container is stopped for a request after one of its name has been, by whichever daemon. By force, a
//     container is stopped even if it is new; once.
//   - A daemon can die at any time, and see late what was written: the request ends as it would have without. Writes fail
//     on a request that somebody else has written meanwhile.
//   - Whoever waits says what for. Something ends every wait but that for a container that never gets ready, which is for
//     the deadline of the request, and that of a request that is under way for a daemon that is gone for good.
//   - A pod that was taken out of traffic for a request is put back when the request is over, or deleted.
//
// Other than the reference, native sidecars can be started anew, a hook may sleep or ask the pod without naming a host, a
// request never stays Pending when it is the first, and a new container that has ended six times is Failed.
// [Work] can have unordered containers stopped together, which the reference never does: by its promise, the next one is
// untouched while the hook of the first runs.
//
// When not to use it: for a container that is to start with another image or other resources, which is for the package
// inplace, and for a pod that can as well be deleted.
package containerrestart
