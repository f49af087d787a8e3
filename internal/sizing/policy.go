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
	formula Expression
	fault   error // of an invalid formula
}

func (w want) path() string { return w.list + "." + string(w.of) }

const (
	limits   = "limits"
	requests = "requests"
)

// Parse reads a policy. Its error is of what nothing can be computed without: how to add up, and what. A formula that
// is broken is an error of Size where it is needed, and of Check in any case; nil is the policy of zero value.
func Parse(policy *appsv1beta1.ResourcesPolicy) (Policy, error) {
	if policy == nil {
		return Policy{}, nil
	}
	p, faults := read(policy)
	if len(faults) > 0 {
		return Policy{}, &InvalidError{Faults: faults}
	}
	return p, nil
}

// Check returns all faults of a policy, for admission: beside those that Parse returns, an empty pattern of
// names, no formulas at all, formulas that are broken or use another variable, and those that are negative whatever
// the containers have. Numbers that are none count as 0, as they do for Size.
func Check(policy *appsv1beta1.ResourcesPolicy) error {
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
		err := w.fault
		if err == nil {
			err = w.formula.Check(w.of)
		}
		if err != nil {
			faults = append(faults, Fault{Field: fieldFormulas + "." + w.path(), Err: err})
		}
	}
	if len(faults) > 0 {
		return &InvalidError{Faults: faults}
	}
	return nil
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

// formulas parses the formulas of one list. An empty text is no formula.
func formulas(list string, of *appsv1beta1.ResourceExprList) []want {
	if of == nil {
		return nil
	}
	var wants []want
	for _, given := range []struct {
		of   corev1.ResourceName
		text string
	}{{corev1.ResourceCPU, of.CPU}, {corev1.ResourceMemory, of.Memory}} {
		if given.text == "" {
			continue
		}
		w := want{list: list, of: given.of}
		w.formula, w.fault = ParseExpression(given.text)
		wants = append(wants, w)
	}
	return wants
}
