package sidecar

import (
	"fmt"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	fieldSelector          = "spec.selector"
	fieldNamespaceSelector = "spec.namespaceSelector"
	fieldUpdateSelector    = "spec.updateStrategy.selector"
	fieldPartition         = "spec.updateStrategy.partition"
	fieldRevision          = "spec.injectionStrategy.revision"
)

// FieldError says which field of which set keeps a pod from being created, and why. All errors of this package that are of
// a set have one.
type FieldError struct {
	// Set is the name of the set.
	Set string
	// Field is its path, as spec.containers[0].
	Field string
	// Err is the reason.
	Err error
}

// Error names the set and the field.
func (e *FieldError) Error() string {
	return fmt.Sprintf("sidecarset %s: %s: %v", e.Set, e.Field, e.Err)
}

// Unwrap gives the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// fieldError is nil where err is.
func fieldError(set *appsv1beta1.SidecarSet, field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Set: set.Name, Field: field, Err: err}
}
