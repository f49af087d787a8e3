package cloneset

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

// refused is 422 with a cause for each fault, as API servers answer.
func refused(name string, faults field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(appsv1beta1.GroupVersion.WithKind("CloneSet").GroupKind(), name, faults).Status()
	return denied(status)
}

// badRequest is 400, with the place if it is known.
func badRequest(err error) admission.Response {
	status := metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error()}
	var wrong *typeError
	if errors.As(err, &wrong) {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeTypeInvalid, Field: wrong.path, Message: wrong.Error(),
		}}}
	}
	return denied(status)
}

// undecided says why nobody judged the object.
func undecided(err error) admission.Response {
	status := metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	var unavailable *podtemplate.UnavailableError
	if !errors.As(err, &unavailable) {
		if errors.Is(err, context.DeadlineExceeded) {
			status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		}
		return denied(status)
	}
	switch unavailable.Reason {
	case podtemplate.NamespaceTerminating, podtemplate.Refused:
		status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case podtemplate.NamespaceMissing:
		status.Code, status.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	case podtemplate.TimedOut:
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	case podtemplate.NotPermitted, podtemplate.Failed:
	}
	return denied(status)
}

func denied(status metav1.Status) admission.Response {
	status.Status = metav1.StatusFailure
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
