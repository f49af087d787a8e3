package imagepull

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Validate rejects an invalid object, with every fault.
func (w *Webhooks) Validate(_ context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	if _, err := review.VersionOf(req, jobs, lists, nodes); err != nil {
		return review.BadRequest(err)
	}
	if why := w.options.closed(req.Resource.Resource); why != "" {
		if review.IsDeleting(req) {
			return admission.Allowed("")
		}
		return review.Forbidden(why)
	}
	now, err := read(req, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	faults := check(now)
	if req.Operation == admissionv1.Create {
		return review.JudgedBadRequest(faults, nil)
	}
	before, err := read(req, req.OldObject.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	job, isJob := now.(*appsv1beta1.ImagePullJob)
	if stored, ok := before.(*appsv1beta1.ImagePullJob); ok && isJob {
		if faults := validation.ImagePullJobUpdate(job, stored); len(faults) > 0 {
			return review.Rejected(http.StatusForbidden, faults)
		}
	}
	return review.JudgedBadRequest(review.Added(faults, check(before)))
}
