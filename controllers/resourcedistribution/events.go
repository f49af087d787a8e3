package resourcedistribution

import corev1 "k8s.io/api/core/v1"

// reasonInvalidSpec is the reason of an event: the spec cannot work, and the copies stay as they are.
const reasonInvalidSpec = "InvalidSpec"

// emitInvalid reports a spec that cannot work, once.
func (r *Reconciler) emitInvalid(s *snapshot) {
	if r.emitted.Changed(s.object.Name, s.input.Invalid) {
		r.api.Event(s.object, corev1.EventTypeWarning, reasonInvalidSpec, s.input.Invalid+": mend the spec")
	}
}
