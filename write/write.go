package write

import (
	"encoding/json"
	"fmt"
	"strings"

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
	// Delete deletes the object, with its UID as the precondition; see SameVersion and Propagation.
	Delete Verb = "Delete"
	// Evict deletes a pod by an eviction, with its UID as the precondition: PodDisruptionBudgets may refuse it with the
	// status 429, which is an answer for now.
	Evict Verb = "Evict"
	// Get reads the object from the API server, past every cache: a question of a pass. Its answer is the object.
	Get Verb = "Get"
	// Ask is a question of a pass that the API server does not answer. Its answer is an error, or nil.
	Ask Verb = "Ask"
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

// Write is one write of one object, or a question about it.
type Write struct {
	// Verb is what the write does.
	Verb Verb
	// Object is what to create, or the object as the plan saw it. It is only read.
	Object Object
	// Subresource to patch; empty for the object itself.
	Subresource string
	// Type of the patch.
	Type types.PatchType
	// FieldOwner is the field manager of a creation or a patch; empty for the name of the client.
	FieldOwner string
	// Force takes over the fields of a server-side apply that other managers own. Without it, an apply is refused where
	// another manager has set one of the fields.
	Force bool
	// Body of the patch. It is made when Data is called, so that a plan that is not sent costs nothing.
	Body Body
	// SameVersion makes the version of the object another precondition of a deletion: an object that has changed since the
	// plan saw it stays.
	SameVersion bool
	// Propagation is what a deletion does to the dependents of the object; empty for the default of the kind.
	Propagation metav1.DeletionPropagation
}

// DeleteOptions returns the preconditions and the propagation of a deletion.
func (w *Write) DeleteOptions() metav1.DeleteOptions {
	uid := w.Object.GetUID()
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if w.SameVersion {
		version := w.Object.GetResourceVersion()
		o.Preconditions.ResourceVersion = &version
	}
	if w.Propagation != "" {
		o.PropagationPolicy = &w.Propagation
	}
	return o
}

// Deletions returns the writes that delete objects.
func Deletions[T Object](objects []T) []*Write {
	writes := make([]*Write, len(objects))
	for i, object := range objects {
		writes[i] = &Write{Verb: Delete, Object: object}
	}
	return writes
}

// String returns what the write does to which object, for errors.
func (w *Write) String() string {
	return fmt.Sprintf("%s %s %s", strings.ToLower(string(w.Verb)), w.Kind(), w.Object.GetName())
}

// Kind returns the kind of the object in lower case, as errors name it: claim for a PersistentVolumeClaim, revision for
// a ControllerRevision.
func (w *Write) Kind() string {
	kind := w.Object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		name := fmt.Sprintf("%T", w.Object)
		kind = name[strings.LastIndexByte(name, '.')+1:]
	}
	switch kind = strings.ToLower(kind); kind {
	case "persistentvolumeclaim":
		return "claim"
	case "controllerrevision":
		return "revision"
	}
	return kind
}

// Request returns the write: a value that embeds one can be sent by package driver.
func (w *Write) Request() *Write { return w }

// Body makes the body of a patch.
type Body interface {
	// Data returns the bytes. They follow from values that must not have changed since the plan was made.
	Data() ([]byte, error)
}

// Bytes is a body that is made already.
type Bytes []byte

// Data returns the bytes.
func (b Bytes) Data() ([]byte, error) { return b, nil }

// Fields is the body of a merge patch or of an apply.
type Fields map[string]any

// Data encodes the fields.
func (f Fields) Data() ([]byte, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

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
