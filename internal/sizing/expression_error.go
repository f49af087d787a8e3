package sizing

import "fmt"

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

// piece is how much of the text an error quotes.
const piece = 20

func quote(text string) string {
	if len(text) > piece {
		return fmt.Sprintf("%q...", text[:piece])
	}
	return fmt.Sprintf("%q", text)
}
