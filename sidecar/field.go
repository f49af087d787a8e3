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

// FieldError is a field of a set because of which a pod cannot be created. Every error of this package about a set
// contains one.
type FieldError struct {
	// Set is the name of the set.
	Set string
	// Field is its path, such as spec.containers[0].
	Field string
	// Err is the reason.
	Err error
}

// Error returns the set, the field and the reason.
func (e *FieldError) Error() string {
	return fmt.Sprintf("sidecarset %s: %s: %v", e.Set, e.Field, e.Err)
}

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// fieldError returns nil if err is nil.
func fieldError(set *appsv1beta1.SidecarSet, field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Set: set.Name, Field: field, Err: err}
}
