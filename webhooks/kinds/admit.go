package kinds

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// admit completes a new object, and rejects what is invalid.
func (w *webhooks[T]) admit(ctx context.Context, req admission.Request) admission.Response {
	r, answer := w.open(req)
	if answer != nil {
		return *answer
	}
	if r.IsUpdate {
		if faults := w.fixed(r.Change); len(faults) > 0 {
			return review.Rejected(http.StatusForbidden, faults)
		}
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	admitted, faults, err := w.row.Admit(ctx, w.api, r.Change)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(faults) > 0:
		return review.Rejected(http.StatusBadRequest, faults)
	}
	sent, err := review.Decode(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	patch, err := review.Changes(sent, r.Now, admitted)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(patch)
}
