package write

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
func (f Fields) Data() ([]byte, error) { return encode(f) }

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

// Op is one operation of a JSON patch, RFC 6902.
type Op struct {
	// Op is the verb.
	Op string `json:"op"`
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Value is the operand. A removal has none.
	Value any `json:"value,omitempty"`
}

// Add returns the operation that sets the key of an object, or inserts an element of a list before the one at the path.
func Add(path string, value any) Op { return Op{Op: "add", Path: path, Value: operand(value)} }

// Replace returns the operation that replaces the value at the path.
func Replace(path string, value any) Op { return Op{Op: "replace", Path: path, Value: operand(value)} }

// Remove returns the operation that removes the value at the path. Where there is none the patch fails.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// Test returns the operation that fails the patch where the path has another value. Nil is the value of an absent key.
func Test(path string, value any) Op { return Op{Op: "test", Path: path, Value: operand(value)} }

// operand makes a nil value explicit: without it the patch would have no operand at all.
func operand(value any) any {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// Escape returns a key as one part of a path.
func Escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Pointer returns the path of nested keys.
func Pointer(keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteByte('/')
		b.WriteString(Escape(key))
	}
	return b.String()
}

// Encode returns the bytes of a JSON patch.
func Encode(ops []Op) ([]byte, error) { return encode(ops) }

func encode(patch any) ([]byte, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// Ops is a JSON patch as a body.
type Ops []Op

// Data returns the bytes.
func (o Ops) Data() ([]byte, error) { return Encode(o) }

// JSON returns a write that patches an object with operations.
func JSON(object Object, subresource string, ops ...Op) *Write {
	return &Write{Verb: Patch, Object: object, Subresource: subresource, Type: types.JSONPatchType, Body: Ops(ops)}
}

// TestUID returns the test that the name still belongs to this object. It returns no test for an object without a UID,
// which no API server returned.
func TestUID(o metav1.Object) []Op {
	if o.GetUID() == "" {
		return nil
	}
	return []Op{Test(Pointer("metadata", "uid"), o.GetUID())}
}

// TestLabel returns the test that a label has the value, or is absent, as in this object.
func TestLabel(o metav1.Object, key string) Op { return testKey("labels", o.GetLabels(), key) }

// TestAnnotation returns the test that an annotation has the value, or is absent, as in this object.
func TestAnnotation(o metav1.Object, key string) Op {
	return testKey("annotations", o.GetAnnotations(), key)
}

// SetLabels returns the operations that set labels of this object, and remove those with nil. Labels that have their
// value already cost no operation.
func SetLabels(o metav1.Object, changed map[string]*string) []Op {
	return setKeys("labels", o.GetLabels(), changed)
}

// SetAnnotations returns the operations that set annotations, as SetLabels does for labels.
func SetAnnotations(o metav1.Object, changed map[string]*string) []Op {
	return setKeys("annotations", o.GetAnnotations(), changed)
}

// SetFinalizers returns the operations that replace the finalizers of this object. They test all finalizers that it
// has, so that no finalizer of another writer is lost.
func SetFinalizers(o metav1.Object, finalizers []string) []Op {
	have, path := o.GetFinalizers(), Pointer("metadata", "finalizers")
	if slices.Equal(have, finalizers) {
		return nil
	}
	var before any // absent where it is empty
	if len(have) > 0 {
		before = have
	}
	return []Op{Test(path, before), Add(path, finalizers)}
}

func testKey(field string, have map[string]string, key string) Op {
	value, ok := have[key]
	switch {
	case ok:
		return Test(Pointer("metadata", field, key), value)
	case len(have) > 0:
		return Test(Pointer("metadata", field, key), nil)
	}
	// Nor may another writer have added the first one, which a later write of all of them would drop.
	return Test(Pointer("metadata", field), nil)
}

func setKeys(field string, have map[string]string, changed map[string]*string) []Op {
	if len(have) == 0 {
		all := map[string]string{}
		for key, value := range changed {
			if value != nil {
				all[key] = *value
			}
		}
		if len(all) == 0 {
			return nil
		}
		path := Pointer("metadata", field)
		return []Op{Test(path, nil), Add(path, all)}
	}
	var ops []Op
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		old, ok := have[key]
		switch value := changed[key]; {
		case value == nil && ok:
			ops = append(ops, Remove(Pointer("metadata", field, key)))
		case value != nil && (!ok || old != *value):
			ops = append(ops, Add(Pointer("metadata", field, key), *value))
		}
	}
	return ops
}

// CompareVersions compares resource versions of one object, or of objects of one resource: -1 if a is older than b, 0
// if they are equal, 1 if a is newer. A version that is not a decimal number of 64 bits, as API servers with a
// store of their own may have, is an error.
//
// Package resourceversion of apimachinery 0.35 has such a function; this one is for those who use an older one.
func CompareVersions(a, b string) (int, error) {
	x, err := strconv.ParseUint(a, 10, 64)
	y, failed := strconv.ParseUint(b, 10, 64)
	if err != nil || failed != nil {
		return 0, fmt.Errorf("resource version %q or %q is not a decimal number", a, b)
	}
	return cmp.Compare(x, y), nil
}
