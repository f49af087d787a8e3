// Package lifecycle holds a pod at three points of its life until hooks let it go, and keeps it out of traffic for
// several writers at once.
//
// A hook is a set of labels and finalizers. While a pod carries any of an inPlaceUpdate or preDelete hook, the
// change waits: whoever put them there finishes first and takes them off. A new or updated pod counts as
// available only once it carries all of a preNormal or inPlaceUpdate hook. The state is a label on the pod:
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
// The functions take a pod as it is and give the move to make; the caller writes it.
//
//	m := lifecycle.Settle(s)
//	if m.Release != "" {
//		conditions, err := lifecycle.Release(s.Pod, pub.LifecycleUserAgent, m.Release, now) // for the pod's status
//		...
//	}
//	if m.To != "" {
//		patch, err := m.Patch(s.Pod, now) // a strategic merge patch of the pod
//		...
//	}
//	switch verdict, m := lifecycle.BeforeUpdate(s); verdict {
//	case lifecycle.Go:   // update the pod in place, in state Updating
//	case lifecycle.Wait: // write m if it moves; the hook's owner, or the next Settle, goes on
//	case lifecycle.Stop: // no update of such a pod: it is being deleted, or nobody knows its state
//	}
//
// Laws:
//   - A pod in the state that a move leads to gets no move: writing is done once.
//   - Without hooks every pod settles in Normal, and neither update nor deletion waits.
//   - The entry that keeps a pod not ready for its update is released by the move to Updated or Normal, whatever the
//     hook says by then.
//   - The pod is not changed.
//
// When not to use it: to make a pod wait for something that can be a readiness gate or an init container.
package lifecycle
