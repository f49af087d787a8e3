package sizing

import (
	"cmp"
	"math"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxBits of a numerator or denominator are more than any formula needs, and few enough to compute with at once.
const maxBits = 512

// value is an exact number, or a quantity in thousandths.
type value struct {
	number *big.Rat // nil for a quantity
	milli  int64
	format resource.Format // empty for a quantity that was a number, which is written as what it meets
}

// fits reports whether a number is within maxBits.
func fits(n *big.Rat) bool { return n.Num().BitLen() <= maxBits && n.Denom().BitLen() <= maxBits }

// thousandths truncates or rounds up to thousandths. It reports false for too many.
func thousandths(n *big.Rat, up bool) (int64, bool) {
	milli := new(big.Rat).Mul(n, big.NewRat(1000, 1))
	whole, rest := new(big.Int).QuoRem(milli.Num(), milli.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64(), whole.IsInt64()
}

// operand is a constant, or computes a quantity from the values of variables. at is its place in the text.
type operand struct {
	at       int
	constant *value
	compute  func(given corev1.ResourceList) (value, *ExpressionError)
}

func (o operand) evaluate(given corev1.ResourceList) (value, *ExpressionError) {
	if o.constant != nil {
		return *o.constant, nil
	}
	return o.compute(given)
}

func (o operand) number() *big.Rat {
	if o.constant == nil {
		return nil
	}
	return o.constant.number
}

// quantity returns an operand whose number, if it is one, is cut to thousandths.
func (o operand) quantity(at int) (operand, *ExpressionError) {
	n := o.number()
	if n == nil {
		return o, nil
	}
	milli, ok := thousandths(n, false)
	if !ok {
		return o, overflow(at, "a number above 2^63 thousandths")
	}
	return operand{at: o.at, constant: &value{milli: milli}}, nil
}

// variable returns the operand of a variable.
func variable(name corev1.ResourceName, at int) operand {
	return operand{at: at, compute: func(given corev1.ResourceList) (value, *ExpressionError) {
		q, ok := given[name]
		if !ok {
			return value{}, &ExpressionError{Undefined, at, "a variable that has a value here", string(name)}
		}
		if q.Sign() >= 0 && q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, "")) <= 0 {
			return value{milli: q.MilliValue(), format: q.Format}, nil
		}
		// MilliValue is wrong for what is far below 0, or too large.
		exact := q.DeepCopy()
		n, _ := new(big.Rat).SetString(exact.AsDec().String())
		milli, ok := thousandths(n, true)
		if !ok {
			return value{}, overflow(at, q.String())
		}
		return value{milli: milli, format: q.Format}, nil
	}}
}

// operator is a sign between operands, or a function: + - * / max min.
type operator struct {
	sign string
	at   int
}

// join returns the operand of an operator. Constants become one at once.
func (o operator) join(left, right operand) (operand, *ExpressionError) {
	if left.number() != nil && right.number() != nil {
		return o.ofNumbers(left.number(), right.number())
	}
	if o.sign == "*" || o.sign == "/" {
		return o.scale(left, right)
	}
	left, err := left.quantity(o.at)
	if err != nil {
		return operand{}, err
	}
	right, err = right.quantity(o.at)
	if err != nil {
		return operand{}, err
	}
	return o.compute(left, right, o.ofQuantities)
}

// ofNumbers computes exactly.
func (o operator) ofNumbers(left, right *big.Rat) (operand, *ExpressionError) {
	n := new(big.Rat)
	switch o.sign {
	case "+":
		n.Add(left, right)
	case "-":
		n.Sub(left, right)
	case "*":
		n.Mul(left, right)
	case "/":
		if right.Sign() == 0 {
			return operand{}, o.byZero()
		}
		n.Quo(left, right)
	default:
		n = left
		if o.prefers(right.Cmp(left)) {
			n = right
		}
	}
	if !fits(n) {
		return operand{}, overflow(o.at, "a number too large or too fine")
	}
	return operand{at: o.at, constant: &value{number: n}}, nil
}

// scale multiplies or divides a quantity by a number.
func (o operator) scale(left, right operand) (operand, *ExpressionError) {
	if o.sign == "*" && left.number() != nil {
		left, right = right, left
	}
	factor := right.number()
	switch {
	case factor == nil:
		const expected = "a number on the right or, of *, on either side"
		return operand{}, &ExpressionError{Kind, o.at, expected, "a quantity"}
	case o.sign == "/" && factor.Sign() == 0:
		return operand{}, o.byZero()
	case o.sign == "/":
		factor = new(big.Rat).Inv(factor)
	}
	return o.compute(left, right, func(l, _ value) (value, bool) {
		product := new(big.Int).Mul(big.NewInt(l.milli), factor.Num())
		product.Quo(product, factor.Denom())
		return value{milli: product.Int64(), format: l.format}, product.IsInt64()
	})
}

// compute returns the operand of an operator that makes a quantity.
func (o operator) compute(left, right operand, of func(l, r value) (value, bool)) (operand, *ExpressionError) {
	compute := func(given corev1.ResourceList) (value, *ExpressionError) {
		l, err := left.evaluate(given)
		if err != nil {
			return value{}, err
		}
		r, err := right.evaluate(given)
		if err != nil {
			return value{}, err
		}
		v, ok := of(l, r)
		if !ok {
			return value{}, overflow(o.at, "one above 2^63 thousandths")
		}
		return v, nil
	}
	if left.constant == nil || right.constant == nil {
		return operand{at: o.at, compute: compute}, nil
	}
	v, err := compute(nil)
	return operand{at: o.at, constant: &v}, err
}

// ofQuantities computes + - max min. A sum is written as its first operand that is not 0.
func (o operator) ofQuantities(left, right value) (value, bool) {
	left.format, right.format = cmp.Or(left.format, right.format), cmp.Or(right.format, left.format)
	v := left
	if left.milli == 0 {
		v.format = right.format
	}
	switch o.sign {
	case "+":
		v.milli += right.milli
		return v, right.milli == 0 || (right.milli > 0) == (v.milli > left.milli)
	case "-":
		v.milli -= right.milli
		return v, right.milli == 0 || (right.milli > 0) == (v.milli < left.milli)
	}
	if o.prefers(cmp.Compare(right.milli, left.milli)) {
		return right, true
	}
	return left, true
}

// prefers reports whether max or min takes the right operand, which compares so with the left one.
func (o operator) prefers(right int) bool {
	return o.sign == "max" && right > 0 || o.sign == "min" && right < 0
}

func (o operator) byZero() *ExpressionError {
	return &ExpressionError{DivisionByZero, o.at, "a divisor other than 0", "0"}
}
