package cloneset

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// judgeDelete passes a deletion on. Without a judge every deletion is allowed.
func (w *Webhooks) judgeDelete(ctx context.Context, req admission.Request) admission.Response {
	if _, err := versionOf(req); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if w.options.Delete == nil {
		return admission.Allowed("")
	}
	return w.options.Delete(ctx, req)
}
