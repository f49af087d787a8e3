package templated

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
)

// Object is an object of a kind, in one of its versions.
type Object interface {
	client.Object
	// Default fills in what the object lacks, except the templates.
	Default()
}

// Spoke is an object in the older version.
type Spoke[T any] interface {
	Object
	// ConvertTo makes the hub of the object.
	ConvertTo(hub T) error
}

// Kind is a kind with a pod template. T is its type in v1beta1, in which objects are validated.
type Kind[T Object] struct {
	// Name of the kind.
	Name string
	// Hub and Old return empty objects. Old is nil for a kind with one version.
	Hub func() T
	Old func() Spoke[T]
	// Default fills in what an object lacks; nil for its own method.
	Default func(Object)
	// Lost returns the faults of an object in the older version that its hub does not show; nil for none.
	Lost func(old Object) field.ErrorList
	// Validate returns what of an object is invalid, with paths in v1beta1.
	Validate func(T) field.ErrorList
	// ValidateUpdate returns what of an update is invalid. Nil for nothing.
	ValidateUpdate func(now, before T) field.ErrorList
	// Lookup returns what needs more than the objects. Nil for nothing.
	Lookup func(context.Context, Change[T]) (field.ErrorList, error)
	// OldPath is the path in the older version of what v1beta1 has at a path. Nil for the same.
	OldPath func(path string) string
	// Ignores reports whether a version accepts a fault, with a warning. Nil for none.
	Ignores func(review.Version, *field.Error) bool
	// At is the path of the pod template in an object, and of the list of claim templates; nil for spec.template and
	// spec.volumeClaimTemplates. Without claims its path is nil.
	At func(object map[string]any) (template, claims []string)
	// Incomplete reports whether a template of an object is accepted, with a warning, that lacks what another pod webhook may add. The
	// reference does not validate the pods of such a template. Nil for none of the objects.
	Incomplete func(object map[string]any) bool
	// AsWritten reports whether the templates of an object get no defaults. Nil for none of the objects.
	AsWritten func(object map[string]any) bool
	// PullPolicy leaves imagePullPolicy to the API server, where the reference does not default it to Always.
	PullPolicy bool
}

// Change is what is done to an object, under review.
type Change[T Object] struct {
	Version   review.Version
	Namespace string
	// Now is the object as it is to be; Before is the stored one.
	Now, Before T
	// IsUpdate means that there is an object before.
	IsUpdate bool
}

func (k *Kind[T]) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: appsv1beta1.GroupVersion.Group, Kind: k.Name}
}

// versionOf returns an error for a request for anything but the kind in a known version.
func (k *Kind[T]) versionOf(req admission.Request) (review.Version, error) {
	v := review.Version(req.Kind.Version)
	if req.Kind.Group != k.groupKind().Group || req.Kind.Kind != k.Name || v != review.Old && v != review.Hub {
		return "", fmt.Errorf("%s/%s %s is no %s of a known version", req.Kind.Group, req.Kind.Version, req.Kind.Kind, k.Name)
	}
	return v, nil
}

// empty returns an object of a version.
func (k *Kind[T]) empty(v review.Version) Object { //nolint:ireturn // of either version
	if v == review.Old && k.Old != nil {
		return k.Old()
	}
	return k.Hub()
}

// paths of the pod template and of the claim templates.
func (k *Kind[T]) paths(object map[string]any) (template, claims []string) {
	if k.At != nil {
		return k.At(object)
	}
	return []string{"spec", "template"}, []string{"spec", "volumeClaimTemplates"}
}

// translated returns the faults with the paths of a version.
func (k *Kind[T]) translated(v review.Version, faults field.ErrorList) field.ErrorList {
	if v == review.Hub || k.OldPath == nil {
		return faults
	}
	faults = slices.Clone(faults)
	for i, fault := range faults {
		moved := *fault
		moved.Field = k.OldPath(fault.Field)
		faults[i] = &moved
	}
	return faults
}

func (k *Kind[T]) ignores(v review.Version, fault *field.Error) bool {
	return k.Ignores != nil && k.Ignores(v, fault)
}
