package sizing

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxBits of a numerator or denominator are more than any formula needs, and few enough to compute with at once.
const maxBits = 512

// held is what an error expects in place of a value that is too large or too fine.
const held = "a value that can be held"

// value is an exact number, or a quantity in whole thousandths.
type value struct {
	n        *big.Rat
	quantity bool
	// format is empty for a number, and for a quantity that was one: it is written as the value that it meets.
	format resource.Format
}

// Evaluate computes an expression with the given values, of which only cpu and memory are used. Values finer than a
// thousandth count as the next one. The result is written in the units of its operands, and never negative. The error
// has the byte of the text where the expression fails.
func Evaluate(text string, given corev1.ResourceList) (resource.Quantity, error) {
	if len(text) > maxLength {
		return resource.Quantity{}, fmt.Errorf("expected at most %d bytes, found %d", maxLength, len(text))
	}
	p := &parser{text: text, given: given}
	v := p.sum()
	if p.word() != "" {
		p.unexpected("an operator or the end")
	}
	v = p.cut(0, v)
	milli, _ := thousandths(v.n, false)
	q := resource.NewMilliQuantity(milli, cmp.Or(v.format, resource.DecimalSI))
	if p.err == nil && milli < 0 {
		p.err = fmt.Errorf("expected a result of at least 0, found %s", q)
	}
	if p.err != nil {
		return resource.Quantity{}, p.err
	}
	return *q, nil
}

// CheckExpression reports whether an expression can compute one resource from itself, for admission: the error is of an
// expression that is invalid or uses another variable, or whose result is negative or too large whatever the value is.
// It tries one unit, 0, and all powers of two of thousandths.
func CheckExpression(text string, of corev1.ResourceName) error {
	candidates := []int64{1000, 0}
	for power := range 63 {
		candidates = append(candidates, 1<<power)
	}
	var first error
	for _, milli := range candidates {
		_, err := Evaluate(text, corev1.ResourceList{of: *resource.NewMilliQuantity(milli, resource.DecimalSI)})
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// fits reports whether a number is within maxBits.
func fits(n *big.Rat) bool { return n.Num().BitLen() <= maxBits && n.Denom().BitLen() <= maxBits }

// thousandths truncates or rounds up to thousandths. It reports false for too many.
func thousandths(n *big.Rat, up bool) (int64, bool) {
	milli := new(big.Int).Mul(n.Num(), big.NewInt(1000))
	whole, rest := milli.QuoRem(milli, n.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64(), whole.IsInt64()
}

// cut returns a value as a quantity, cut towards 0.
func (p *parser) cut(at int, v value) value {
	milli, ok := thousandths(v.n, false)
	if !ok {
		return p.fail(at, held, "one above 2^63 thousandths")
	}
	return value{n: big.NewRat(milli, 1000), quantity: true, format: v.format}
}

// variable returns the value of a variable.
func (p *parser) variable(at int, name corev1.ResourceName) value {
	q, ok := p.given[name]
	if !ok {
		return p.fail(at, "a variable that has a value here", string(name))
	}
	if q.Sign() >= 0 && q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, "")) <= 0 {
		return value{n: big.NewRat(q.MilliValue(), 1000), quantity: true, format: q.Format}
	}
	exact := q.DeepCopy() // MilliValue is wrong for what is far below 0, or too large
	n, _ := new(big.Rat).SetString(exact.AsDec().String())
	milli, ok := thousandths(n, true)
	if !ok {
		return p.fail(at, held, q.String())
	}
	return value{n: big.NewRat(milli, 1000), quantity: true, format: q.Format}
}

// join computes an operator: + - * / max min. A sum is written as its first operand that is not 0.
func (p *parser) join(sign string, at int, x, y value) value {
	scales := sign == "*" || sign == "/"
	switch {
	case scales && y.quantity && (x.quantity || sign == "/"):
		return p.fail(at, "a number on the right or, of *, on either side", "a quantity")
	case sign == "/" && y.n.Sign() == 0:
		return p.fail(at, "a non-zero divisor", "0")
	case !scales && x.quantity != y.quantity:
		x, y = p.cut(at, x), p.cut(at, y)
	}
	x.format, y.format = cmp.Or(x.format, y.format), cmp.Or(y.format, x.format)
	v := value{n: new(big.Rat), quantity: x.quantity || y.quantity, format: x.format}
	if !scales && x.n.Sign() == 0 {
		v.format = y.format
	}
	v.n, v.format = compute(sign, x, y, v)
	switch {
	case v.quantity:
		return p.cut(at, v)
	case !fits(v.n):
		return p.fail(at, held, "a number too large or too fine")
	}
	return v
}

// compute returns the number of a result, and its format.
func compute(sign string, x, y, v value) (*big.Rat, resource.Format) {
	switch sign {
	case "+":
		v.n.Add(x.n, y.n)
	case "-":
		v.n.Sub(x.n, y.n)
	case "*":
		v.n.Mul(x.n, y.n)
	case "/":
		v.n.Quo(x.n, y.n)
	default:
		v = x
		if c := y.n.Cmp(x.n); sign == "max" && c > 0 || sign == "min" && c < 0 {
			v = y
		}
	}
	return v.n, v.format
}

// fail keeps the first error.
func (p *parser) fail(at int, expected, found string) value {
	if p.err == nil {
		p.err, p.at = fmt.Errorf("at %d: expected %s, found %s", at, expected, found), len(p.text)
	}
	return value{n: big.NewRat(1, 1)}
}

// quote quotes the first 20 bytes of a text.
func quote(text string) string {
	if len(text) > 20 {
		return strconv.Quote(text[:20]) + "..."
	}
	return strconv.Quote(text)
}
