package sizing

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reason is the kind of fault of an expression.
type Reason string

const (
	// Syntax means that the text is not in the language.
	Syntax Reason = "Syntax"
	// Limit means that the text is too long or nested too deeply.
	Limit Reason = "Limit"
	// Kind means that a quantity stands where only a number can, as in cpu*cpu or 1/memory.
	Kind Reason = "Kind"
	// DivisionByZero means that a divisor is 0.
	DivisionByZero Reason = "DivisionByZero"
	// Overflow means that a value is too large, or a number too fine.
	Overflow Reason = "Overflow"
	// Undefined means that a name has no value.
	Undefined Reason = "Undefined"
	// Negative means that a value or the result is below 0.
	Negative Reason = "Negative"
)

// ExpressionError is why an expression fails. ParseExpression and Evaluate return no other error.
type ExpressionError struct {
	Reason Reason

	text string
}

// Error returns one line. It quotes a piece of the expression, not all of it.
func (e *ExpressionError) Error() string { return e.text }

// Expression is a checked formula, to be evaluated as often as needed. The zero value fails as an empty text does.
type Expression struct{ text string }

// ParseExpression checks an expression: it evaluates the expression with variables of unknown values.
func ParseExpression(text string) (Expression, error) {
	e := evaluator{text: text, isCheck: true}
	_, err := e.evaluate()
	return Expression{text}, err
}

// Evaluate computes the expression with the given values, of which only cpu and memory are used. Values finer than a
// thousandth count as the next one. The result is written in the units of its operands, and never negative.
func (e Expression) Evaluate(given corev1.ResourceList) (resource.Quantity, error) {
	of := evaluator{text: e.text, given: given}
	return of.evaluate()
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

// evaluate reads and computes the whole text.
func (e *evaluator) evaluate() (resource.Quantity, error) {
	if len(e.text) > maxLength {
		e.fail(Limit, maxLength, fmt.Sprintf("at most %d bytes", maxLength), fmt.Sprint(len(e.text)))
	}
	e.advance()
	result := e.sum()
	if e.token != "" {
		e.unexpected("an operator or the end")
	}
	result = e.quantity(result, 0)
	q := resource.NewMilliQuantity(result.milli, resource.DecimalSI)
	if result.format != "" {
		q.Format = result.format
	}
	if result.milli < 0 {
		e.fail(Negative, 0, "a result of at least 0", q.String())
	}
	if e.err != nil {
		return resource.Quantity{}, e.err
	}
	return *q, nil
}

// variable returns the value of cpu or memory.
func (e *evaluator) variable(name corev1.ResourceName, at int) value {
	q, ok := e.given[name]
	switch {
	case e.isCheck:
		return value{isUnknown: true}
	case !ok:
		for _, other := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if _, known := e.given[other]; known {
				return e.fail(Undefined, at, string(other)+", the only variable that is known here", string(name))
			}
		}
		return e.fail(Undefined, at, "a value of "+string(name), "none")
	case q.Sign() < 0:
		return e.fail(Negative, at, "a value of at least 0", q.String())
	case q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)) > 0:
		return e.overflow(at, q.String())
	}
	return value{milli: q.MilliValue(), format: q.Format}
}
