package containerrecreaterequest

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// request is the hub version, in which all objects are validated.
type request = appsv1beta1.ContainerRecreateRequest

// Mutate completes a new request, and rejects an invalid one.
func (w *Webhook) Mutate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionOf(req, "containerrecreaterequests")
	if err != nil {
		return review.BadRequest(err)
	}
	if w.options.NoDaemon {
		if review.IsDeleting(req) {
			return admission.Allowed("")
		}
		return review.Forbidden("no container is restarted: feature gate KruiseDaemon is off")
	}
	now, err := read(version, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	if req.Operation == admissionv1.Create {
		return w.create(ctx, req, now)
	}
	before, err := read(version, req.OldObject.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	faults := validation.ContainerRecreateRequestUpdate(now, before)
	if version == review.Old {
		faults = append(faults, containerrestart.CheckGrace(before, now)...)
	}
	if len(faults) > 0 {
		return review.Rejected(http.StatusForbidden, faults)
	}
	return admission.Allowed("")
}

// read decodes an object as v1beta1.
func read(version review.Version, raw []byte) (*request, error) {
	return review.ReadHub(version, raw, &request{}, &appsv1alpha1.ContainerRecreateRequest{})
}

func (w *Webhook) create(ctx context.Context, req admission.Request, r *request) admission.Response {
	if faults := validation.ContainerRecreateRequest(r); len(faults) > 0 {
		return review.Rejected(http.StatusBadRequest, faults)
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	pod, node, err := w.whereabouts(ctx, req.Namespace, r.Spec.PodName)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	admitted, faults := containerrestart.Admit(r, pod, node)
	if len(faults) > 0 {
		return review.Rejected(http.StatusBadRequest, faults)
	}
	content, err := review.Decode(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	patch, err := review.Changes(content, r, admitted)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(patch)
}
