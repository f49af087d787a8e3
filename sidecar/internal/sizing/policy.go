package sizing

import (
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Policy is a parsed resourcesPolicy. It does not change, and is safe for concurrent use. The zero value
// sums all containers, and sets nothing.
type Policy struct {
	largest bool
	names   *regexp.Regexp // nil matches all
	wants   []want
}

// want is a limit or request with a formula.
type want struct {
	list    string // limits or requests
	of      corev1.ResourceName
	formula string
}

func (w want) path() string { return w.list + "." + string(w.of) }

const (
	limits   = "limits"
	requests = "requests"

	fieldMode     = "targetContainersMode"
	fieldNames    = "targetContainersNameRegex"
	fieldFormulas = "resourcesExpr"
)

// ErrNoTarget means that no container of the pod matches the policy. Such a pod cannot be created.
var ErrNoTarget = errors.New("no container of the pod matches the policy")

// Fault is one invalid field of a policy.
type Fault struct {
	// Field of the policy, as resourcesExpr.limits.cpu.
	Field string
	// Err is the reason.
	Err error
}

// Parse reads a policy. Its error is of what nothing can be computed without: how to add up, and what. A formula that
// is broken is an error of Size where it is needed, and of Check in any case; nil is the policy of zero value.
func Parse(policy *appsv1beta1.ResourcesPolicy) (Policy, error) {
	if policy == nil {
		return Policy{}, nil
	}
	p, faults := read(policy)
	all := make([]error, 0, len(faults))
	for _, f := range faults {
		all = append(all, fmt.Errorf("%s: %w", f.Field, f.Err))
	}
	return p, errors.Join(all...)
}

// Check returns all faults of a policy, for admission: besides those that Parse returns, an empty pattern of
// names, no formulas at all, formulas that are broken or use another variable, and those that are negative whatever
// the containers have. Numbers that are none count as 0, as they do for Size.
func Check(policy *appsv1beta1.ResourcesPolicy) []Fault {
	if policy == nil {
		return nil
	}
	p, faults := read(policy)
	if policy.TargetContainersNameRegex == "" {
		faults = append(faults, Fault{Field: fieldNames, Err: errors.New("a pattern is required")})
	}
	if policy.ResourcesExpr.Limits == nil && policy.ResourcesExpr.Requests == nil {
		faults = append(faults, Fault{Field: fieldFormulas, Err: errors.New("limits or requests are required")})
	}
	for _, w := range p.wants {
		if err := CheckExpression(w.formula, w.of); err != nil {
			faults = append(faults, Fault{Field: fieldFormulas + "." + w.path(), Err: err})
		}
	}
	return faults
}

// read parses what can be parsed, and returns the faults of the rest.
func read(policy *appsv1beta1.ResourcesPolicy) (Policy, []Fault) {
	var p Policy
	var faults []Fault
	switch policy.TargetContainersMode {
	case appsv1beta1.TargetContainersModeSum:
	case appsv1beta1.TargetContainersModeMax:
		p.largest = true
	default:
		faults = append(faults, Fault{
			Field: fieldMode, Err: fmt.Errorf("%q is neither sum nor max", policy.TargetContainersMode),
		})
	}
	names, err := regexp.Compile(policy.TargetContainersNameRegex)
	if err != nil {
		faults = append(faults, Fault{Field: fieldNames, Err: err})
	}
	p.names = names
	p.wants = append(formulas(limits, policy.ResourcesExpr.Limits), formulas(requests, policy.ResourcesExpr.Requests)...)
	return p, faults
}

// formulas returns the formulas of one list. An empty text is no formula.
func formulas(list string, of *appsv1beta1.ResourceExprList) []want {
	if of == nil {
		return nil
	}
	var wants []want
	if of.CPU != "" {
		wants = append(wants, want{list, corev1.ResourceCPU, of.CPU})
	}
	if of.Memory != "" {
		wants = append(wants, want{list, corev1.ResourceMemory, of.Memory})
	}
	return wants
}
