// Package passes has what a reconciler carries from one pass to the next, and when that pass is due.
//
// A Memory keeps the state of objects that the API server does not store:
//
//	known := r.memory.Recall(key)
//	...
//	r.memory.Note(key, func(k *knowledge) { k.verified = set.UID })
//	...
//	r.memory.Forget(key) // when the object is gone
//
// Texts keep events from being repeated at each pass:
//
//	if r.emitted.First(job, text) { // or Changed
//		r.Event(job, corev1.EventTypeWarning, reason, text)
//	}
//
// Sooner, Until and Earliest tell after which time to requeue.
//
// A process that starts knows nothing, so that a pass must also be right without: what must outlast a restart belongs
// into the status of the object.
package passes
