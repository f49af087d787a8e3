package disruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/pub"
)

// departTimeout is how long an admitted deletion waits at most for its record.
const departTimeout = time.Second

// Spreads records in WorkloadSpreads that pods are deleted, so that the next pod can have the place. An Allocator of
// webhooks/workloadspread does.
type Spreads interface {
	// Ready waits until all WorkloadSpreads can be read. It returns at once if they can, also with a context that has
	// ended.
	Ready(ctx context.Context) error
	// Depart records that the deletion of a pod was admitted.
	Depart(ctx context.Context, pod *corev1.Pod) error
}

// ReviewOpen records a request as at OpenPath: in the budget where the user is exempt, and in WorkloadSpreads. It
// admits every request.
func (w *Webhook) ReviewOpen(ctx context.Context, req admission.Request) admission.Response {
	d, err := w.disruption(ctx, req, false)
	if err != nil {
		log.FromContext(ctx).Info("Left out the record of a deletion",
			"pod", req.Namespace+"/"+req.Name, "reason", err.Error())
		return admission.Allowed("")
	}
	asked := d.Operation != pub.Harmless && (!w.options.NoDeletes || !deletes(d.Operation))
	if asked && w.guard != nil && w.guard.Exempts(d.User) {
		_, _ = w.guard.Review(ctx, d) // never refuses an exempt user, and logs why a record is missing
	}
	w.depart(ctx, d)
	return admission.Allowed("")
}

func deletes(o pub.Operation) bool { return o == pub.Delete || o == pub.Evict }

// depart records an admitted deletion. A failure delays the place of the pod until the controller has observed the
// deletion.
func (w *Webhook) depart(ctx context.Context, d Disruption) {
	if w.options.Spreads == nil || d.DryRun || d.Pod == nil || !deletes(d.Operation) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, departTimeout)
	defer cancel()
	if err := w.options.Spreads.Depart(ctx, d.Pod); err != nil {
		log.FromContext(ctx).Error(err, "Failed to record the deletion of a pod", "pod", d.Pod.Namespace+"/"+d.Pod.Name)
	}
}
