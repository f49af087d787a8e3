package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/sidecar"
)

// retryAfter is the pause, in seconds, that clients are asked for where the next attempt may succeed.
const retryAfter = 1

// StepError says at which step a pod was refused.
type StepError struct {
	Step string
	Err  error
}

// Error names the step.
func (e *StepError) Error() string { return fmt.Sprintf("step %s: %v", e.Step, e.Err) }

// Unwrap gives the reason.
func (e *StepError) Unwrap() error { return e.Err }

// LookupError is something that has to be known about a pod and could not be read.
type LookupError struct {
	// What was to be read, such as a namespace.
	What string
	Err  error
}

// Error names what.
func (e *LookupError) Error() string { return fmt.Sprintf("look up %s: %v", e.What, e.Err) }

// Unwrap gives the reason.
func (e *LookupError) Unwrap() error { return e.Err }

// passing says that the next attempt may succeed.
func (e *StepError) passing() bool {
	var lookup *LookupError
	return errors.As(e.Err, &lookup) || e.late()
}

func (e *StepError) late() bool {
	return errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled)
}

// response refuses the pod.
func (e *StepError) response() admission.Response {
	status := metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: e.Error()}
	var field *sidecar.FieldError
	var pod *UnfitError
	switch {
	case e.late():
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		status.Message = "not done in the time that the API server waits: " + status.Message
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case e.passing():
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case errors.As(e.Err, &field):
		status.Details = &metav1.StatusDetails{
			Group: appsv1beta1.GroupVersion.Group, Kind: "SidecarSet", Name: field.Set,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field.Field, Message: field.Err.Error()}},
		}
	case errors.As(e.Err, &pod):
		status.Details = &metav1.StatusDetails{Kind: "Pod"}
		for _, fault := range pod.Faults {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(fault.Type), Field: fault.Field, Message: fault.ErrorBody()})
		}
	}
	return review.Denied(status)
}

// outcome of a step, for metrics.
type outcome int

const (
	skipped outcome = iota
	changed
	lacking
	refused
	outcomes
)

// String is the value of the label.
func (o outcome) String() string {
	return [outcomes]string{"skipped", "changed", "lacking", "refused"}[o]
}

func outcomeOf[T any](next *T, lost bool, err error) outcome {
	switch {
	case err != nil:
		return refused
	case lost:
		return lacking
	case next != nil:
		return changed
	}
	return skipped
}
