package disruption

import (
	"context"
	"errors"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/write"
)

// retryAfter is the pause in seconds before a retry that may succeed.
const retryAfter = 1

// refused is the answer where the budget has no room. Clients wait after 429 alone, so that an eviction gets that code.
func refused(o pub.Operation, d Decision) admission.Response {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "podunavailablebudget"},
		d.Budget.Name, errors.New(d.Text)).Status()
	switch {
	case d.Reason == pub.Unsynced:
		status.Code, status.Reason, status.Details.RetryAfterSeconds = http.StatusTooManyRequests,
			metav1.StatusReasonTooManyRequests, retryAfter
	case o == pub.Evict:
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		status.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: status.Message}}
	}
	return review.Denied(status)
}

// undecided is the answer where there is no decision.
func undecided(o pub.Operation, err error) admission.Response {
	var invalid requestError
	if errors.As(err, &invalid) {
		return review.BadRequest(invalid.error)
	}
	status := metav1.Status{
		Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error(),
	}
	status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	switch {
	case write.IsRefused(err):
		return review.Forbidden(err.Error())
	case o == pub.Evict:
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	}
	return review.Denied(status)
}
