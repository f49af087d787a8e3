package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// Review answers a request as at Path.
func (w *Webhook) Review(ctx context.Context, req admission.Request) admission.Response {
	q := &question{
		UID:         req.UID,
		Resource:    req.Resource,
		SubResource: req.SubResource,
		Namespace:   req.Namespace,
		Operation:   req.Operation,
		DryRun:      req.DryRun,
	}
	if !q.concerns() {
		return admission.Allowed("")
	}
	q.Pod = &corev1.Pod{}
	if err := review.Unmarshal(req.Object.Raw, q.Pod); err != nil {
		return review.BadRequest(err)
	}
	return w.answer(ctx, q, caller{path: Path, within: w.options.Timeout})
}
