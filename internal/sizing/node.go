package sizing

import (
	"math/big"

	corev1 "k8s.io/api/core/v1"
)

// operation is what a node does.
type operation byte

const (
	literal operation = iota
	variable
	negate
	add
	subtract
	scale
	smaller
	larger
)

// node computes a quantity. What is only made of numbers is a number by the time that a node is made, so that a tree
// holds a node for each operation on quantities, and no other.
type node struct {
	operation   operation
	at          int
	left, right *node

	amount                 amount              // of a literal
	name                   corev1.ResourceName // of a variable
	numerator, denominator *big.Int            // to scale left by
}

// evaluate computes a node and what is below it.
func (n *node) evaluate(given corev1.ResourceList) (amount, error) {
	switch n.operation {
	case literal:
		return n.amount, nil
	case variable:
		return n.lookUp(given)
	}
	left, err := n.left.evaluate(given)
	if err != nil {
		return amount{}, err
	}
	right := amount{}
	if n.right != nil {
		if right, err = n.right.evaluate(given); err != nil {
			return amount{}, err
		}
	}
	result, ok := n.combine(left, right)
	if !ok {
		return amount{}, overflow(n.at, "one above 2^63 thousandths")
	}
	return result, nil
}

func (n *node) lookUp(given corev1.ResourceList) (amount, error) {
	q, defined := given[n.name]
	if !defined {
		return amount{}, n.undefined(given)
	}
	value, ok := amountOf(q)
	if !ok {
		return amount{}, overflow(n.at, q.String())
	}
	return value, nil
}

// undefined names the variable that can be used in place of this one, if there is one.
func (n *node) undefined(given corev1.ResourceList) error {
	for _, other := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, known := given[other]; known {
			return &ExpressionError{
				Reason:   Undefined,
				At:       n.at,
				Expected: string(other) + ", the only variable that is known here",
				Found:    string(n.name),
			}
		}
	}
	return &ExpressionError{Reason: Undefined, At: n.at, Expected: "a value of " + string(n.name), Found: "none"}
}

// combine gives what the operation makes of its operands, false where that overflows.
func (n *node) combine(left, right amount) (amount, bool) {
	left, right = left.like(right), right.like(left)
	switch n.operation {
	case negate:
		return left.minus()
	case add:
		return left.plus(right)
	case subtract:
		return left.less(right)
	case scale:
		return left.times(n.numerator, n.denominator)
	case smaller:
		if right.milli < left.milli {
			return right, true
		}
	case larger:
		if right.milli > left.milli {
			return right, true
		}
	}
	return left, true
}
