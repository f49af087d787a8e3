// Package failure classifies the errors of API requests, for reconcilers that must decide what a failed write stops.
//
//	class      errors                                 what follows
//	refusal    4xx but for those below                this write fails, writes to other objects continue
//	final      400, 403, 422                          a refusal that repeats until someone changes something
//	outage     5xx, 401, 408, 429, no answer          writes to other objects would fail too
//
// That an object is no longer what a write was decided upon is no failure: see write.IsOutdated. A webhook that fails answers for the API server with 500, so that [MayBeRefusal] also includes that code.
package failure

import (
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// IsRefusal reports whether an error is about the one request alone.
func IsRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// MayBeRefusal reports whether an error can be about the one request: a refusal, or the answer for a webhook that fails.
func MayBeRefusal(err error) bool { return IsRefusal(err) || apierrors.IsInternalError(err) }

// IsFinal reports whether the API server refuses the same request again.
func IsFinal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// Parts returns the errors that were joined into one, at any depth of joining; nil has none.
func Parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}

// Terminal marks an error as terminal when only a change of the spec can mend each of its parts. The reconciler then does not
// retry.
func Terminal(err error, needsOtherSpec func(error) bool) error {
	parts := Parts(err)
	if len(parts) == 0 || slices.ContainsFunc(parts, func(part error) bool { return !needsOtherSpec(part) }) {
		return err
	}
	return reconcile.TerminalError(err)
}
