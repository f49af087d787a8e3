package kinds

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/write"
)

// oldVersion is the version of the objects that Row.Old decodes.
const oldVersion = "v1alpha1"

// Spoke is an object in the older version.
type Spoke[T any] interface {
	client.Object
	// ConvertTo fills in the object of the newer version.
	ConvertTo(hub T) error
}

// Row is a kind, for its webhooks. T is the type in which objects are validated. Functions must not change their input,
// unless they say so, and nil functions do nothing.
type Row[T client.Object] struct {
	// Kind is the kind in the version of T.
	Kind schema.GroupVersionKind
	// Hub and Old are empty objects. Old is of v1alpha1, and nil for a kind with one version.
	Hub T
	Old Spoke[T]
	// MutatePath and ValidatePath receive the requests. An empty one is not served.
	MutatePath, ValidatePath string

	// Closed is why the webhook that validates rejects every object, as where a feature gate is off. Empty lets objects
	// in. An object that is being deleted can still be updated. ClosedCode is the code of the answer, 403 by default.
	Closed     string
	ClosedCode int32
	// AdmitDeleting admits every update of an object that is being deleted.
	AdmitDeleting bool
	// Code is the code of a rejection of an invalid object: 422 by default, or 400.
	Code int32

	// Validate returns what is invalid in an object.
	Validate func(T) field.ErrorList
	// Rules returns the function that takes the place of Validate, where the rules depend on something that must be read.
	Rules func(context.Context, API, Change[T]) (func(T) field.ErrorList, error)
	// Older returns faults together with those of the object in the older version that its hub does not show.
	Older func(old client.Object, faults field.ErrorList) field.ErrorList
	// ValidateUpdate returns what is invalid in an update.
	ValidateUpdate func(now, before T) field.ErrorList
	// Fixed returns the faults of an update that are rejected with 403, before all others.
	Fixed func(Change[T]) field.ErrorList
	// Lookup returns what needs more than the objects. Its faults come after those of the other functions.
	Lookup func(context.Context, API, Change[T]) (Finding, error)
	// Warn returns warnings of an object.
	Warn func(T) []string
	// OldPath returns the path in the older version of what T has at a path. Nil for the same path.
	OldPath func(path string) string
	// Ignores reports whether a fault is a warning.
	Ignores func(old bool, fault *field.Error) bool

	// Template is for a kind with a pod template.
	Template *Template
	// Default fills in an object of either version, except the templates. Nil for the method Default of the object.
	Default func(client.Object)
	// Arrange changes an object as it was sent, before Default, and returns the same as a patch.
	Arrange func(content map[string]any, r Request) []write.Op
	// Complete takes the place of Default and Arrange for a kind whose defaults need calls, and follow from each other: it
	// changes Change.Now into the object with all defaults, after Fill has changed the object as it was sent, and has
	// returned the same as a patch.
	Complete func(Change[T])
	Fill     func(ctx context.Context, api API, c Change[T], content map[string]any) ([]write.Op, error)
	// Admit makes the webhook at MutatePath the only one of the kind: of a new object Admit returns the completed one or
	// the faults, which are rejected with 400. Of an update only the faults of Fixed are rejected.
	Admit func(context.Context, API, Change[T]) (T, field.ErrorList, error)
}

// Template is how a kind has a pod template.
type Template struct {
	// At returns the path of the pod template in an object, and of the list of claim templates. A nil path is for an
	// object without. Nil for spec.template and spec.volumeClaimTemplates.
	At func(object map[string]any) (template, claims []string)
	// Incomplete reports whether a template of an object is accepted, with a warning, that lacks what another pod webhook
	// may add. The reference does not validate the pods of such a template. Nil for none of the objects.
	Incomplete func(object map[string]any) bool
	// AsWritten reports whether the templates of an object get no defaults. Nil for none of the objects.
	AsWritten func(object map[string]any) bool
}

// Request is how an object was sent.
type Request struct {
	// Old means that the request is of the older version.
	Old bool
	// IsUpdate means that there is an object before.
	IsUpdate bool
}

// Change is what is done to an object, under review.
type Change[T client.Object] struct {
	Request

	Namespace string
	// Now is the object as it is to be, and Before is the stored object. Raw and RawBefore are the same as they were sent.
	Now, Before    T
	Raw, RawBefore []byte
	// DryRun means that nothing is stored.
	DryRun bool
	// Faults are those that are found before Lookup.
	Faults field.ErrorList
}

// Finding is what Lookup finds.
type Finding struct {
	Faults   field.ErrorList
	Warnings []string
}

// copied returns a copy of an object.
func copied[O client.Object](o O) O {
	c, _ := o.DeepCopyObject().(O) // a copy has the type of its object
	return c
}

// versionOf returns an error for a request for anything but the kind in a known version.
func (r *Row[T]) versionOf(req admission.Request) (old bool, err error) {
	k := req.Kind
	if k.Group == r.Kind.Group && k.Kind == r.Kind.Kind {
		switch {
		case k.Version == r.Kind.Version:
			return false, nil
		case k.Version == oldVersion && r.Old != nil:
			return true, nil
		}
	}
	return false, fmt.Errorf("%s/%s %s is no %s of a known version", k.Group, k.Version, k.Kind, r.Kind.Kind)
}

// paths of the pod template and of the claim templates.
func (r *Row[T]) paths(object map[string]any) (template, claims []string) {
	switch {
	case r.Template == nil:
		return nil, nil
	case r.Template.At != nil:
		return r.Template.At(object)
	}
	return []string{"spec", "template"}, []string{"spec", "volumeClaimTemplates"}
}

// translated returns the faults with the paths of the version of a request.
func (r *Row[T]) translated(old bool, faults field.ErrorList) field.ErrorList {
	if !old || r.OldPath == nil {
		return faults
	}
	faults = slices.Clone(faults)
	for i, fault := range faults {
		moved := *fault
		moved.Field = r.OldPath(fault.Field)
		faults[i] = &moved
	}
	return faults
}

// asWritten reports whether the templates of an object get no defaults.
func (t *Template) asWritten(object map[string]any) bool {
	return t.AsWritten != nil && t.AsWritten(object)
}

// incomplete reports whether a template of an object may lack what a pod webhook adds.
func (t *Template) incomplete(object map[string]any) bool {
	return t.Incomplete != nil && t.Incomplete(object)
}
