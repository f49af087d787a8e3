package sizing

import (
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxBits of a numerator or denominator are more than any formula needs, and few enough to compute with at once.
const maxBits = 512

// value is a number, or else a quantity.
type value struct {
	number *big.Rat

	// milli is a quantity in thousandths.
	milli int64
	// format is how to write the quantity; empty for a quantity that was a number.
	format resource.Format
	// isUnknown is true for a quantity that depends on a variable while an expression is checked.
	isUnknown bool
}

// quantity converts a number to a quantity. The number is cut to thousandths.
func (e *evaluator) quantity(v value, at int) value {
	if v.number == nil {
		return v
	}
	milli, ok := thousandths(v.number, false)
	if !ok {
		return e.overflow(at, "a number above 2^63 thousandths")
	}
	return value{milli: milli}
}

// operate applies + - * / max or min. Two numbers make a number; any other pair makes a quantity.
func (e *evaluator) operate(operator string, at int, left, right value) value {
	switch {
	case e.err != nil:
		return value{}
	case operator == "/" && right.number != nil && right.number.Sign() == 0:
		return e.fail(DivisionByZero, at, "a divisor other than 0", "0")
	case left.number != nil && right.number != nil:
		result := ofNumbers(operator, left.number, right.number)
		if !fits(result) {
			return e.overflow(at, "a number too large or too fine")
		}
		return value{number: result}
	case operator == "*" && right.number == nil:
		return e.scale(at, right, left.number)
	case operator == "*":
		return e.scale(at, left, right.number)
	case operator == "/" && right.number != nil:
		return e.scale(at, left, new(big.Rat).Inv(right.number))
	case operator == "/":
		return e.scale(at, left, nil)
	}
	left, right = e.quantity(left, at), e.quantity(right, at)
	if left.isUnknown || right.isUnknown {
		return value{isUnknown: true}
	}
	return e.combine(operator, at, left, right)
}

// ofNumbers applies an operator to numbers.
func ofNumbers(operator string, left, right *big.Rat) *big.Rat {
	switch operator {
	case "+":
		return new(big.Rat).Add(left, right)
	case "-":
		return new(big.Rat).Sub(left, right)
	case "*":
		return new(big.Rat).Mul(left, right)
	case "/":
		return new(big.Rat).Quo(left, right)
	}
	if order := right.Cmp(left); operator == "max" && order > 0 || operator == "min" && order < 0 {
		return right
	}
	return left
}

// scale multiplies a quantity by a number, and cuts the product to thousandths.
func (e *evaluator) scale(at int, of value, by *big.Rat) value {
	switch {
	case by == nil:
		return e.fail(Kind, at, "a number on the right or, of *, on either side", "a quantity")
	case of.isUnknown:
		return of
	}
	product := new(big.Int).Mul(big.NewInt(of.milli), by.Num())
	return e.checked(at, product.Quo(product, by.Denom()), of.format)
}

// combine applies + - max or min to quantities. The result of max and min is written as the operand that it is, and a
// sum as its first operand that is not 0. A quantity that was a number is written as the other one.
func (e *evaluator) combine(operator string, at int, left, right value) value {
	if left.format == "" {
		left.format = right.format
	}
	if right.format == "" {
		right.format = left.format
	}
	switch operator {
	case "max", "min":
		if left.milli != right.milli && (right.milli > left.milli) == (operator == "max") {
			return right
		}
		return left
	}
	if left.milli == 0 {
		left.format = right.format
	}
	a, b := big.NewInt(left.milli), big.NewInt(right.milli)
	if operator == "-" {
		b.Neg(b)
	}
	return e.checked(at, a.Add(a, b), left.format)
}

// negate applies a minus that stands before a value.
func (e *evaluator) negate(at int, of value) value {
	switch {
	case e.err != nil || of.isUnknown:
		return of
	case of.number != nil:
		return value{number: new(big.Rat).Neg(of.number)}
	}
	return e.checked(at, new(big.Int).Neg(big.NewInt(of.milli)), of.format)
}

// checked returns a quantity, or fails where the quantity does not fit.
func (e *evaluator) checked(at int, milli *big.Int, format resource.Format) value {
	if !milli.IsInt64() {
		return e.overflow(at, "a quantity above 2^63 thousandths")
	}
	return value{milli: milli.Int64(), format: format}
}

// fits reports whether a number is within maxBits.
func fits(n *big.Rat) bool {
	return n.Num().BitLen() <= maxBits && n.Denom().BitLen() <= maxBits
}

// thousandths truncates or rounds up to thousandths. It reports false for too many.
func thousandths(n *big.Rat, up bool) (int64, bool) {
	scaled := new(big.Rat).Mul(n, big.NewRat(1000, 1))
	quotient, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Int64(), quotient.IsInt64()
}

// unit returns the factor of a suffix, and the format of quantities with it.
func unit(suffix string) (factor *big.Rat, format resource.Format, ok bool) {
	if suffix == "m" {
		return big.NewRat(1, 1000), resource.DecimalSI, true
	}
	base, format, prefixes := int64(1000), resource.DecimalSI, "kMGTP"
	if prefix, isBinary := strings.CutSuffix(suffix, "i"); isBinary {
		base, format, prefixes, suffix = 1024, resource.BinarySI, "KMGTP", prefix
	}
	power := strings.Index(prefixes, suffix)
	if len(suffix) != 1 || power < 0 {
		return nil, "", false
	}
	n := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power+1)), nil)
	return new(big.Rat).SetInt(n), format, true
}
