package kinds

import (
	"context"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// complete answers for a kind without a pod template.
func (w *webhooks[T]) complete(req admission.Request, old bool, sent content) admission.Response {
	c := changeOf[T](req, old)
	var arranged []write.Op
	if w.row.Arrange != nil {
		arranged = w.row.Arrange(sent.object)
	}
	if len(arranged) > 0 {
		var err error
		if c.Raw, err = json.Marshal(sent.object); err != nil {
			return review.BadRequest(err)
		}
	}
	o, err := w.row.read(c, c.Raw)
	if err != nil {
		// The schema comes after this webhook and names the fields of a wrong type.
		return admission.Allowed("")
	}
	before := copied(o.hub)
	if c.Now = o.hub; w.row.Complete != nil {
		w.row.Complete(c)
	}
	return patched(sent.object, arranged, before, o.hub)
}

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
	return patched(sent, nil, r.Now, admitted)
}

// patched answers with a patch, and with what makes of an object another one.
func patched(sent map[string]any, patch []write.Op, before, after client.Object) admission.Response {
	changes, err := review.Changes(sent, before, after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(append(patch, changes...))
}
