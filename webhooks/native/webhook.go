package native

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/workload/native"
)

// Path receives updates of Deployments.
const Path = "/hold-apps-v1-deployment"

// SetupWithManager serves the webhook on the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: Handle})
}

// Handle answers one request. It admits a request that it cannot read.
func Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Update || req.SubResource != "" || req.Resource.Resource != "deployments" {
		return admission.Allowed("")
	}
	var before, after appsv1.Deployment
	err := errors.Join(review.Unmarshal(req.OldObject.Raw, &before), review.Unmarshal(req.Object.Raw, &after))
	if err != nil {
		log.FromContext(ctx).Error(err, "Admitted a Deployment that cannot be read")
		return admission.Allowed("")
	}
	if patch := native.Hold(&before, &after); patch != nil {
		return review.Patched(patch)
	}
	return admission.Allowed("")
}
