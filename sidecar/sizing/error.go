package sizing

import (
	"errors"
	"strings"
)

// ErrNoTarget says that none of the pod's containers is one whose resources count. Such a pod cannot be created.
var ErrNoTarget = errors.New("no container of the pod matches the policy")

const (
	fieldMode     = "targetContainersMode"
	fieldNames    = "targetContainersNameRegex"
	fieldFormulas = "resourcesExpr"
)

// Fault is one thing that is wrong with a policy.
type Fault struct {
	// Field of the policy, as resourcesExpr.limits.cpu.
	Field string
	// Err says why; of a formula, it is an *expression.Error.
	Err error
}

// InvalidError says what is wrong with a policy.
type InvalidError struct {
	// Faults are all of them, in the order of the fields.
	Faults []Fault
}

// Error names the fields.
func (e *InvalidError) Error() string {
	parts := make([]string, 0, len(e.Faults))
	for _, fault := range e.Faults {
		parts = append(parts, fault.Field+": "+fault.Err.Error())
	}
	return strings.Join(parts, "; ")
}

// Unwrap gives the reasons.
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, 0, len(e.Faults))
	for _, fault := range e.Faults {
		errs = append(errs, fault.Err)
	}
	return errs
}
