// Package lifecycle holds pods for hooks at three points of their life, and keeps pods out of traffic for several
// writers at once.
//
// A hook is a set of labels and finalizers. While a pod has any of an inPlaceUpdate or preDelete hook, the update or
// the deletion waits until the owner of the hook removes them. A new or updated pod counts as available only once it
// has all of a preNormal or inPlaceUpdate hook. The state is a label of the pod:
//
//	            created
//	               │
//	       PreparingNormal ──(all of preNormal)──▶ Normal ◀──(all of inPlaceUpdate)── Updated
//	                                                 │                                   ▲
//	                           (any of inPlaceUpdate)│                                   │
//	                                                 ▼                                   │
//	                                         PreparingUpdate ──(none left)──▶ Updating ──┘
//	any ──(any of preDelete)──▶ PreparingDelete ──(none left)──▶ deleted
//
// The functions take a pod and return the move to make. Move.Next returns its writes, one at a time.
//
//	move := lifecycle.Settle(situation)
//	switch verdict, before := lifecycle.BeforeUpdate(situation); verdict {
//	case lifecycle.Go:   // update the pod in place, in state Updating
//	case lifecycle.Wait: // write the move before, if any; the hook's owner, or the next Settle, does the rest
//	case lifecycle.Stop: // no update of this pod: it is being deleted, or its state is unknown
//	}
//	for {
//		w, err := move.Next(pod, now)
//		if err != nil || w == nil {
//			return err
//		}
//		pod, err = send(w) // a JSON patch; where write.IsOutdated(err), read the pod and decide again
//	}
//
// # The condition Ready
//
// Ready follows from ContainersReady and all readiness gates of the pod. The kubelet computes Ready, some time after a
// gate has changed. Two functions compute it from the conditions that a writer is about to write:
//
//   - Ready, for a writer on a cluster with kubelets. It returns a condition only for a pod that stops being ready:
//     traffic must end before the writer goes on, so the write that closes the gate also sets Ready to False. The
//     kubelet sets Ready to True: a writer could contradict a probe that has failed since. Gate.Hold and Move.Next
//     write what Ready returns.
//   - Readiness, where no kubelet runs: virtual nodes, simulations, tests. It returns a condition in both directions,
//     and nil for a pod whose Ready keeps its status.
//
// To read whether a pod is ready, look at the condition that the pod has (ConditionOf), and compute nothing.
//
// Laws:
//   - A pod gets no move to its own state: each write is made once.
//   - Without hooks every pod settles in Normal, and neither update nor deletion waits.
//   - The move to Updated or Normal releases the entry that keeps a pod not ready for its update, also where the hook
//     was changed meanwhile.
//   - Of two writes that were decided upon the same pod, the API server accepts one where both change the state, or
//     both change the entries.
//   - The pod is not changed.
//
// When not to use it: to make a pod wait for something that can be a readiness gate or an init container.
package lifecycle
