package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

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

// response refuses the pod. Clients as kubectl say that what the details name is invalid, and then each cause by its field: the
// pod is named, and a field that is not one of the pod goes by the set that has it.
func (e *StepError) response(pod *corev1.Pod) admission.Response {
	status := metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: e.Error()}
	details := &metav1.StatusDetails{Kind: "Pod", Name: cmp.Or(pod.Name, pod.GenerateName)}
	var wrong *sidecar.FieldError
	var unfit *UnfitError
	switch {
	case e.late():
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		status.Message = "not done in the time that the API server waits: " + status.Message
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case e.passing():
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	case errors.As(e.Err, &wrong):
		at := field.NewPath("sidecarsets").Key(wrong.Set).String() + "." + wrong.Field
		details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: at, Message: wrong.Err.Error()}}
		status.Details = details
	case errors.As(e.Err, &unfit):
		status.Details = details
		for _, fault := range unfit.Faults {
			details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseType(fault.Type), Field: fault.Field, Message: fault.ErrorBody()})
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
