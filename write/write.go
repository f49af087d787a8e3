package write

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any API object. It has the methods of controller-runtime's client.Object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Verb is what a write does.
type Verb string

const (
	// Patch changes the object.
	Patch Verb = "Patch"
	// Create creates the object.
	Create Verb = "Create"
	// Delete deletes the object, with its UID as the precondition.
	Delete Verb = "Delete"
)

// The subresources of a pod that are written.
const (
	// Main is the object itself.
	Main = ""
	// Status holds the conditions.
	Status = "status"
	// Resize takes cpu and memory.
	Resize = "resize"
)

// Write is one write of one object.
type Write struct {
	// Verb is what the write does.
	Verb Verb
	// Object is what to create, or the object as the plan saw it. It is only read.
	Object Object
	// Subresource to patch; empty for the object itself.
	Subresource string
	// Type of the patch.
	Type types.PatchType
	// Body of the patch. It is made when Data is called, so that a plan that is not sent costs nothing.
	Body Body
}

// Body makes the body of a patch.
type Body interface {
	// Data returns the bytes. They follow from values that must not have changed since the plan was made.
	Data() ([]byte, error)
}

// Bytes is a body that is made already.
type Bytes []byte

// Data returns the bytes.
func (b Bytes) Data() ([]byte, error) { return b, nil }

// Data returns the body of the patch. It is nil for other verbs.
func (w *Write) Data() ([]byte, error) {
	if w.Body == nil {
		return nil, nil
	}
	return w.Body.Data()
}

// Subresources returns the subresource as the variadic argument that client-go takes: none for the object itself.
func (w *Write) Subresources() []string {
	if w.Subresource == Main {
		return nil
	}
	return []string{w.Subresource}
}

// The HTTP statuses that this package tells apart.
const (
	statusBadRequest      = 400
	statusUnauthorized    = 401
	statusRequestTimeout  = 408
	statusUnprocessable   = 422 // an object or a patch that the API server rejects
	statusTooManyRequests = 429
	statusInternal        = 500
)

// IsRefused reports whether an error is the API server's answer to this one request: the write was not made, and others may
// succeed. After any other error the write may have been made, or the next ones fail too.
func IsRefused(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case statusUnauthorized, statusRequestTimeout, statusTooManyRequests:
		return false
	default:
		return code >= statusBadRequest && code < statusInternal
	}
}

// IsOutdated reports whether an error says that the object is no longer what the write was decided upon: it is gone, its
// version or UID is another, or a test of the JSON patch failed. Observe the object and plan again; there is nothing to
// report to a user.
func IsOutdated(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	if apierrors.IsNotFound(err) {
		return !apierrors.IsUnexpectedServerError(err) // else the API server lacks the resource or the subresource
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	// An API server that rejects an object lists the causes and the kind. Where a test of the patch failed it lists neither.
	status := answer.Status()
	if status.Code != statusUnprocessable {
		return false
	}
	return status.Details == nil || len(status.Details.Causes) == 0 && status.Details.Kind == ""
}
