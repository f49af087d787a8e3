package sizing

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ExpressionOptions of ParseExpression. The zero value accepts what stored objects may contain.
type ExpressionOptions struct {
	// Strict rejects malformed numbers such as 1e or 100Mx. Without it they count as 0.
	Strict bool
}

// Expression is a parsed formula, to be evaluated as often as needed. It does not change, and is safe for concurrent
// use. The zero value fails as an empty text does.
type Expression struct {
	text string
	root *node
	uses []corev1.ResourceName
}

// ParseExpression parses an expression. An accepted expression fails later only because of its values: ParseExpression
// distinguishes quantities from numbers, computes everything that consists of numbers, divisors included, and rejects a
// negative result that uses no variable.
func ParseExpression(text string, o ExpressionOptions) (Expression, error) {
	if len(text) > maxLength {
		return Expression{}, &ExpressionError{
			Reason:   Limit,
			At:       maxLength,
			Expected: "at most " + strconv.Itoa(maxLength) + " bytes",
			Found:    strconv.Itoa(len(text)),
		}
	}
	p := &parser{text: text, options: o, uses: map[corev1.ResourceName]bool{}}
	result, err := p.whole()
	if err != nil {
		return Expression{}, err
	}
	root, err := result.quantity(0)
	if err != nil {
		return Expression{}, err
	}
	e := Expression{text: text, root: root}
	for variableName := range p.uses {
		e.uses = append(e.uses, variableName)
	}
	slices.Sort(e.uses)
	if len(e.uses) == 0 {
		_, err = e.Evaluate(nil)
	}
	if err != nil {
		return Expression{}, err
	}
	return e, nil
}

// String returns the text as it was parsed.
func (e Expression) String() string { return e.text }

// Uses returns the variables that need a value, by name. The caller may keep and change the result.
func (e Expression) Uses() []corev1.ResourceName { return slices.Clone(e.uses) }

// Evaluate computes the expression with the given values, of which only cpu and memory are used. Values
// finer than a thousandth count as the next one. The result is written in the units of its operands, and never
// negative.
func (e Expression) Evaluate(given corev1.ResourceList) (resource.Quantity, error) {
	if e.root == nil {
		return resource.Quantity{}, &ExpressionError{Reason: Syntax, Expected: "an expression", Found: "none"}
	}
	result, err := e.root.evaluate(given)
	if err != nil {
		return resource.Quantity{}, err
	}
	result = result.like(amount{format: resource.DecimalSI})
	q := resource.NewMilliQuantity(result.milli, result.format)
	if result.milli < 0 {
		return resource.Quantity{}, &ExpressionError{
			Reason: Negative, At: e.root.at, Expected: "a result of at least 0", Found: q.String(),
		}
	}
	return *q, nil
}

// Check reports whether an expression can compute one resource from itself, for admission: the error is of a
// variable other than this one, or of a result that is negative or too large whatever the value is. It tries 0, one
// unit, and all powers of two of thousandths.
func (e Expression) Check(of corev1.ResourceName) error {
	candidates := []int64{1000, 0}
	for power := range 63 {
		candidates = append(candidates, 1<<power)
	}
	var first error
	for _, milli := range candidates {
		_, err := e.Evaluate(corev1.ResourceList{of: *resource.NewMilliQuantity(milli, resource.DecimalSI)})
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
