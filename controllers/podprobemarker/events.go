package podprobemarker

import corev1 "k8s.io/api/core/v1"

// reasonInvalidSpec is not among the reference's, which stops working.
const reasonInvalidSpec = "InvalidSpec"

// emitInvalid reports a marker that cannot be decoded.
func (r *Reconciler) emitInvalid(s *snapshot) {
	if s.malformed != nil {
		r.api.Event(s.marker, corev1.EventTypeWarning, reasonInvalidSpec, s.malformed.Error())
	}
}
