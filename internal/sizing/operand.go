package sizing

import "math/big"

// operand is a number, or what computes a quantity.
type operand struct {
	number *big.Rat
	tree   *node
}

// quantity makes a quantity of any operand. A number is cut to thousandths, and written as what it meets.
func (o operand) quantity(at int) (*node, error) {
	if o.tree != nil {
		return o.tree, nil
	}
	milli, ok := thousandths(o.number, false)
	if !ok {
		return nil, overflow(at, "a number above 2^63 thousandths")
	}
	return &node{operation: literal, at: at, amount: amount{milli: milli}}, nil
}

// operator is what stands between or before operands.
type operator struct {
	sign string // + - * / max min
	at   int
}

// between applies an operator. Numbers make a number; what a quantity is part of, makes a quantity.
func (o operator) between(left, right operand) (operand, error) {
	if left.number != nil && right.number != nil {
		return o.ofNumbers(left.number, right.number)
	}
	switch o.sign {
	case "*":
		if left.number != nil {
			left, right = right, left
		}
		return o.scaled(left, right, false)
	case "/":
		return o.scaled(left, right, true)
	}
	l, err := left.quantity(o.at)
	if err != nil {
		return operand{}, err
	}
	r, err := right.quantity(o.at)
	if err != nil {
		return operand{}, err
	}
	operations := map[string]operation{"+": add, "-": subtract, "min": smaller, "max": larger}
	return operand{tree: &node{operation: operations[o.sign], at: o.at, left: l, right: r}}, nil
}

// scaled multiplies or divides a quantity.
func (o operator) scaled(left, right operand, divide bool) (operand, error) {
	if right.number == nil {
		return operand{}, &ExpressionError{
			Reason: Kind, At: o.at, Expected: "a number on the right or, of *, on either side", Found: "a quantity",
		}
	}
	factor := right.number
	if divide {
		if factor.Sign() == 0 {
			return operand{}, o.byZero()
		}
		factor = new(big.Rat).Inv(factor)
	}
	return operand{tree: &node{
		operation: scale, at: o.at, left: left.tree,
		numerator: new(big.Int).Set(factor.Num()), denominator: new(big.Int).Set(factor.Denom()),
	}}, nil
}

// ofNumbers computes at once.
func (o operator) ofNumbers(left, right *big.Rat) (operand, error) {
	result := new(big.Rat)
	switch o.sign {
	case "+":
		result.Add(left, right)
	case "-":
		result.Sub(left, right)
	case "*":
		result.Mul(left, right)
	case "/":
		if right.Sign() == 0 {
			return operand{}, o.byZero()
		}
		result.Quo(left, right)
	case "max":
		result = left
		if right.Cmp(left) > 0 {
			result = right
		}
	case "min":
		result = left
		if right.Cmp(left) < 0 {
			result = right
		}
	}
	if !fits(result) {
		return operand{}, overflow(o.at, "a number too large or too fine")
	}
	return operand{number: result}, nil
}

func (o operator) byZero() error {
	return &ExpressionError{Reason: DivisionByZero, At: o.at, Expected: "a divisor other than 0", Found: "0"}
}

// negative applies an unary minus.
func (o operator) negative(of operand) operand {
	if of.number != nil {
		return operand{number: new(big.Rat).Neg(of.number)}
	}
	return operand{tree: &node{operation: negate, at: o.at, left: of.tree}}
}
