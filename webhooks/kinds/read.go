package kinds

import (
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// reviewed is a change, with the objects as they were sent.
type reviewed[T client.Object] struct {
	Change[T]

	now, before object[T]
}

// object is an object as it was sent, and its hub. The object in the older version is nil for a request of the newer
// version.
type object[T client.Object] struct {
	content

	hub T
	old client.Object
}

// bounded are the fields of a spec that templates, or parts of templates, are in.
func bounded() []string {
	return []string{"template", "volumeClaimTemplates", "topology", "containers", "initContainers", "volumes"}
}

// open reads a request that must be reviewed. Else it returns the answer.
func (w *webhooks[T]) open(req admission.Request) (r reviewed[T], answer *admission.Response) {
	if answer := review.Oversized(req, bounded()...); answer != nil {
		return r, answer
	}
	old, err := w.row.versionOf(req)
	if err != nil {
		return r, answered(review.BadRequest(err))
	}
	if (w.row.AdmitDeleting || w.row.Closed != "") && review.IsDeleting(req) {
		return r, answered(admission.Allowed(""))
	}
	if w.row.Closed != "" {
		return r, answered(w.closed())
	}
	r.Change = changeOf[T](req, old)
	if r.now, err = w.row.read(r.Change, req.Object.Raw); err != nil {
		return r, answered(review.BadRequest(err))
	}
	r.Now = r.now.hub
	if r.IsUpdate {
		if r.before, err = w.row.read(r.Change, req.OldObject.Raw); err != nil {
			return r, answered(review.BadRequest(err))
		}
		r.Before = r.before.hub
	}
	return r, nil
}

// changeOf is a change without its objects.
func changeOf[T client.Object](req admission.Request, old bool) Change[T] {
	return Change[T]{
		Request:   Request{Old: old, IsUpdate: req.Operation == admissionv1.Update},
		Namespace: req.Namespace, Raw: req.Object.Raw, RawBefore: req.OldObject.Raw, DryRun: ptr.Deref(req.DryRun, false),
	}
}

func answered(answer admission.Response) *admission.Response { return &answer }

func (w *webhooks[T]) closed() admission.Response {
	if w.row.ClosedCode == http.StatusBadRequest {
		return review.BadRequest(errors.New(w.row.Closed))
	}
	return review.Forbidden(w.row.Closed)
}

// read decodes an object of a change.
func (r *Row[T]) read(c Change[T], raw []byte) (o object[T], err error) {
	if r.Template != nil {
		if o.content, err = r.content(raw); err != nil {
			return o, err
		}
	}
	o.hub = copied(r.Hub)
	if !c.Old {
		err = review.Unmarshal(raw, o.hub)
	} else {
		old := copied(r.Old)
		if err = review.Unmarshal(raw, old); err != nil {
			return o, err
		}
		if err = old.ConvertTo(o.hub); err != nil {
			return o, fmt.Errorf("convert to %s: %w", r.Kind.Version, err)
		}
		o.old = old
	}
	if o.hub.GetNamespace() == "" {
		o.hub.SetNamespace(c.Namespace)
	}
	return o, err
}
