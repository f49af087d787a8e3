package write

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefused reports whether an error is the API server's answer to this one request: the write was not made, and others
// may succeed. After any other error the write may have been made, or the next ones fail too.
func IsRefused(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return isFailedPatch(err)
	}
	switch code := answer.Status().Code; {
	case isTooLarge(answer):
		return true
	case code == 401, code == 408, code == 429: // unauthorized, a timeout of the request, too many requests
		return false
	default:
		return code >= 400 && code < 500
	}
}

// isTooLarge reports whether an object would be too large for the store of the API server, which answers that with the
// status 500.
func isTooLarge(answer apierrors.APIStatus) bool {
	s := answer.Status()
	return s.Code == 413 ||
		s.Code == 500 && (strings.Contains(s.Message, "etcdserver: request is too large") ||
			strings.Contains(s.Message, "trying to send message larger than max"))
}

// IsFinal reports whether the API server refuses the same write again until a user changes an object: the write is
// invalid or forbidden, the API server cannot read it, or the object would be too large.
func IsFinal(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && isTooLarge(answer) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err)
}

// IsOutdated reports whether an error says that the object is no longer what the write was decided upon: it is gone,
// its version or UID is another, or a test of the JSON patch failed. Observe the object and plan again; there is
// nothing to report to a user. What a webhook denies is not outdated, with whatever status. The answers of fake clients
// are recognised, too.
func IsOutdated(err error) bool {
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer) && isDenial(answer):
		return false
	case apierrors.IsConflict(err):
		return true
	case apierrors.IsNotFound(err):
		return !apierrors.IsUnexpectedServerError(err) // else the API server lacks the resource or the subresource
	case answer == nil:
		return isFailedPatch(err)
	}
	// An API server that rejects an object lists the causes and the kind. Where a test of the patch failed it lists
	// neither.
	status := answer.Status()
	return status.Code == 422 &&
		(status.Details == nil || len(status.Details.Causes) == 0 && status.Details.Kind == "")
}

// isFailedPatch reports whether an error without an answer is that of a JSON patch that was applied in this process.
// The fake clients of client-go and controller-runtime return the errors of gopkg.in/evanphx/json-patch.v4. They are
// recognised by their text, so that this package does not depend on that module.
func isFailedPatch(err error) bool {
	return err != nil && slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
		return strings.HasSuffix(line, ": test failed") || strings.HasSuffix(line, ": missing value")
	})
}

// isDenial reports whether an answer is that of a webhook. The API server passes its status on, with these words before
// the message.
func isDenial(answer apierrors.APIStatus) bool {
	message := answer.Status().Message
	return strings.HasPrefix(message, "admission webhook ") && strings.Contains(message, " denied the request")
}
