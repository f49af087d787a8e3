package sidecarterminator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/write"
)

// emit emits the event of a write that stops containers.
func (r *Reconciler) emit(p *plan, w *write.Write) {
	if w.Verb == write.Create || w.Verb == write.Patch && w.Subresource == write.Main {
		r.api.Event(p.in.Pod, corev1.EventTypeNormal, finish.EventReason, p.Event)
	}
}
