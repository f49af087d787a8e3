package kinds

import (
	"context"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/review"
)

// complete answers for a kind with the function Complete.
func (w *webhooks[T]) complete(
	ctx context.Context, req admission.Request, old bool, sent content,
) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	c := changeOf[T](req, old)
	patch, err := w.row.Fill(ctx, w.api, c, sent.object)
	if err != nil {
		return review.Undecided(err)
	}
	if len(patch) > 0 {
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
	c.Now = o.hub
	w.row.Complete(c)
	for _, converted := range []client.Object{before, o.hub} { // the conversion writes the annotation itself
		delete(converted.GetAnnotations(), kruise.ConversionDataKey)
	}
	changes, err := review.Changes(sent.object, before, o.hub)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(append(patch, changes...))
}
