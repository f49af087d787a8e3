package write

import (
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
	// EphemeralContainers takes containers for debugging.
	EphemeralContainers = "ephemeralcontainers"
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
