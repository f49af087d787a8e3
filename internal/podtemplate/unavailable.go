package podtemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reason why there is no verdict.
type Reason string

const (
	// NotPermitted means that the webhook may not create PodTemplates.
	NotPermitted Reason = "NotPermitted"
	// NamespaceTerminating means that nothing can be created in the namespace any more, including pods.
	NamespaceTerminating Reason = "NamespaceTerminating"
	// NamespaceMissing means that there is no such namespace.
	NamespaceMissing Reason = "NamespaceMissing"
	// TimedOut means that the API server took too long.
	TimedOut Reason = "TimedOut"
	// Refused means that a quota, policy or webhook of the cluster rejects PodTemplates.
	Refused Reason = "Refused"
	// Failed is any other error.
	Failed Reason = "Failed"
)

// UnavailableError is the reason why the API server gave no verdict.
type UnavailableError struct {
	Reason    Reason
	Namespace string
	// Cause is the error of the call.
	Cause error
}

// Error names the cause, and what to do about it.
func (e *UnavailableError) Error() string {
	what := fmt.Sprintf("check the pod template by a dry run in namespace %q: ", e.Namespace)
	switch e.Reason {
	case NotPermitted:
		what += "the webhook needs the verb create on podtemplates: "
	case NamespaceTerminating:
		what += "the namespace is being terminated: "
	case NamespaceMissing:
		what += "there is no such namespace: "
	case TimedOut:
		what += "the API server did not answer in time: "
	case Refused:
		what += "a rule of the cluster for podtemplates refuses it: "
	case Failed:
	}
	return what + e.Cause.Error()
}

// Unwrap returns the error of the call.
func (e *UnavailableError) Unwrap() error { return e.Cause }

func unavailable(ctx context.Context, namespace string, err error) *UnavailableError {
	e := &UnavailableError{Reason: Failed, Namespace: namespace, Cause: err}
	switch {
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded),
		apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		e.Reason = TimedOut
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.Reason = NamespaceTerminating
	case apierrors.IsNotFound(err):
		// A created object cannot be missing, and every API server serves podtemplates.
		e.Reason = NamespaceMissing
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		e.Reason = NotPermitted
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), IsDenial(err):
		e.Reason = Refused
	}
	return e
}
