package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// retryAfter is the pause in seconds before a retry that may succeed.
const retryAfter = 1

// StepError is the step at which a pod is rejected.
type StepError struct {
	Step string
	Err  error
}

// Error names the step.
func (e *StepError) Error() string { return fmt.Sprintf("step %s: %v", e.Step, e.Err) }

// Unwrap returns the reason.
func (e *StepError) Unwrap() error { return e.Err }

// retriable reports whether a retry may succeed.
func (e *StepError) retriable() bool {
	var lookup *LookupError
	return errors.As(e.Err, &lookup) || e.late()
}

func (e *StepError) late() bool {
	return errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled)
}

// response rejects the pod. Clients such as kubectl print that the object of the details is invalid, and each cause by
// its field: the details name the pod, and the field of another object is prefixed with that object.
func (e *StepError) response(pod *corev1.Pod) admission.Response {
	status := metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: e.Error()}
	var invalid *InvalidError
	switch {
	case e.late():
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		status.Message = "not done in the time that the API server waits: " + status.Message
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case e.retriable():
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case errors.As(e.Err, &invalid):
		status.Details = &metav1.StatusDetails{Kind: "Pod", Name: cmp.Or(pod.Name, pod.GenerateName), Causes: invalid.Causes}
	}
	return review.Denied(status)
}

// outcome is how a step ended, for metrics.
type outcome int

const (
	skipped outcome = iota
	changed
	lacking
	refused
	outcomes
)

// String returns the value of the label.
func (o outcome) String() string {
	return [outcomes]string{"skipped", "changed", "lacking", "refused"}[o]
}

func outcomeOf(r Result, err error) outcome {
	switch {
	case err != nil:
		return refused
	case r.Lacking > 0:
		return lacking
	case r.Pod != nil:
		return changed
	}
	return skipped
}
