package review

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

// Invalid is 422 with a cause for each of the first 100 faults, as API servers answer.
func Invalid(kind schema.GroupKind, name string, faults field.ErrorList) admission.Response {
	first, rest := First(faults)
	status := apierrors.NewInvalid(kind, name, first).Status()
	status.Message += rest
	return Denied(status)
}

// Warned adds a warning for each of the first 100 faults that the stored object has.
func Warned(answer admission.Response, borne field.ErrorList) admission.Response {
	first, rest := First(borne)
	for i, fault := range first {
		text := fault.Error()
		if i == maxFaults-1 {
			text += rest
		}
		answer.Warnings = append(answer.Warnings, text)
	}
	return answer
}

// Undecided is the answer for an object that could not be reviewed.
func Undecided(err error) admission.Response {
	status := metav1.Status{
		Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
	}
	var unavailable *podtemplate.UnavailableError
	if !errors.As(err, &unavailable) {
		if errors.Is(err, context.DeadlineExceeded) {
			status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		}
		return Denied(status)
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
	return Denied(status)
}
