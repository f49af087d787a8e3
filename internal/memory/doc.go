// Package memory keeps, between the passes of a reconciler, the state of its objects that the API server does not
// store.
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
// A process that starts knows nothing, so that a pass must also be right without: what must outlast a restart belongs
// into the status of the object.
package memory
