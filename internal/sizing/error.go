package sizing

import (
	"errors"
	"strings"
)

// ErrNoTarget means that no container of the pod matches the policy. Such a pod cannot be created.
var ErrNoTarget = errors.New("no container of the pod matches the policy")

const (
	fieldMode     = "targetContainersMode"
	fieldNames    = "targetContainersNameRegex"
	fieldFormulas = "resourcesExpr"
)

// Fault is one invalid field of a policy.
type Fault struct {
	// Field of the policy, as resourcesExpr.limits.cpu.
	Field string
	// Err is the reason; of a formula, it is an *ExpressionError.
	Err error
}

// InvalidError lists the invalid fields of a policy.
type InvalidError struct {
	// Faults are in the order of the fields.
	Faults []Fault
}

// Error returns the fields with their reasons.
func (e *InvalidError) Error() string {
	parts := make([]string, 0, len(e.Faults))
	for _, fault := range e.Faults {
		parts = append(parts, fault.Field+": "+fault.Err.Error())
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the reasons.
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, 0, len(e.Faults))
	for _, fault := range e.Faults {
		errs = append(errs, fault.Err)
	}
	return errs
}
