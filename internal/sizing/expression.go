package sizing

import (
	"cmp"
	"fmt"
	"strconv"

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
	// Negative means that the result is below 0.
	Negative Reason = "Negative"
)

// ExpressionError is where an expression fails, and why. ParseExpression and Evaluate return no other error.
type ExpressionError struct {
	// Reason for callers that distinguish faults.
	Reason Reason
	// At is the byte of the text where it fails, from 0; the length of the text where that ends too early.
	At int
	// Expected there, in words.
	Expected string
	// Found there instead, in words or quoted.
	Found string
}

// Error returns one line. It quotes a piece of the text, not all of it.
func (e *ExpressionError) Error() string {
	return fmt.Sprintf("at %d: expected %s, found %s", e.At, e.Expected, e.Found)
}

func overflow(at int, found string) *ExpressionError {
	return &ExpressionError{Overflow, at, "a value that can be held", found}
}

// quote quotes the first 20 bytes of a text.
func quote(text string) string {
	if len(text) > 20 {
		return fmt.Sprintf("%q...", text[:20])
	}
	return fmt.Sprintf("%q", text)
}

// Expression is a parsed formula, to be evaluated as often as needed. It does not change, and is safe for concurrent
// use. The zero value fails as an empty text does.
type Expression struct {
	root operand
}

// ParseExpression parses an expression. An accepted expression fails later only because of its values: ParseExpression
// distinguishes quantities from numbers, and computes everything that uses no variable, divisors included.
func ParseExpression(text string) (Expression, error) {
	if len(text) > maxLength {
		return Expression{}, &ExpressionError{
			Limit, maxLength, "at most " + strconv.Itoa(maxLength) + " bytes", strconv.Itoa(len(text)),
		}
	}
	p := &parser{text: text}
	e := Expression{root: p.sum()}
	if p.err == nil && p.word() != "" {
		p.unexpected("an operator or the end")
	}
	if p.err == nil && e.root.constant != nil {
		_, p.err = e.compute(nil)
	}
	if p.err != nil { // a nil pointer would be an error
		return Expression{}, p.err
	}
	return e, nil
}

// Evaluate computes the expression with the given values, of which only cpu and memory are used. Values finer than a
// thousandth count as the next one. The result is written in the units of its operands, and never negative.
func (e Expression) Evaluate(given corev1.ResourceList) (resource.Quantity, error) {
	q, err := e.compute(given)
	if err != nil {
		return resource.Quantity{}, err
	}
	return q, nil
}

func (e Expression) compute(given corev1.ResourceList) (resource.Quantity, *ExpressionError) {
	if e.root.constant == nil && e.root.compute == nil {
		return resource.Quantity{}, &ExpressionError{Syntax, 0, "an expression", "none"}
	}
	root, err := e.root.quantity(e.root.at)
	if err != nil {
		return resource.Quantity{}, err
	}
	v, err := root.evaluate(given)
	if err != nil {
		return resource.Quantity{}, err
	}
	q := resource.NewMilliQuantity(v.milli, cmp.Or(v.format, resource.DecimalSI))
	if v.milli < 0 {
		return resource.Quantity{}, &ExpressionError{Negative, e.root.at, "a result of at least 0", q.String()}
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
