package sizing

import (
	"math"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxBits of a numerator or denominator are more than any formula needs, and few enough to compute with at once.
	maxBits = 512
	// maxExponent of a number keeps it within maxBits.
	maxExponent = 100
)

// amount is a quantity: thousandths, and how they are written; without a format it was a plain number.
type amount struct {
	milli  int64
	format resource.Format
}

// fits reports whether a number is within maxBits.
func fits(n *big.Rat) bool {
	return n.Num().BitLen() <= maxBits && n.Denom().BitLen() <= maxBits
}

// decimal returns the number of digits with at most one point, times 10^exponent.
func decimal(digits string, exponent int) *big.Rat {
	whole, fraction, _ := strings.Cut(digits, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return new(big.Rat)
	}
	exponent -= len(fraction)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent < 0 {
		return new(big.Rat).SetFrac(n, power)
	}
	return new(big.Rat).SetInt(n.Mul(n, power))
}

// unit returns the factor of a suffix, and the format of quantities with it.
func unit(suffix string) (of *big.Rat, format resource.Format, known bool) {
	if suffix == "m" {
		return big.NewRat(1, 1000), resource.DecimalSI, true
	}
	base, format, prefixes := int64(1000), resource.DecimalSI, "kMGTP"
	if prefix, binary := strings.CutSuffix(suffix, "i"); binary {
		base, format, prefixes, suffix = 1024, resource.BinarySI, "KMGTP", prefix
	}
	power := strings.Index(prefixes, suffix)
	if len(suffix) != 1 || power < 0 {
		return nil, "", false
	}
	n := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power+1)), nil)
	return new(big.Rat).SetInt(n), format, true
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

// amountOf returns the amount of a quantity, rounded up to thousandths as quantities round.
func amountOf(q resource.Quantity) (amount, bool) {
	if q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)) > 0 ||
		q.Cmp(*resource.NewMilliQuantity(math.MinInt64, resource.DecimalSI)) < 0 {
		return amount{}, false
	}
	if q.Sign() >= 0 {
		return amount{milli: q.MilliValue(), format: q.Format}, true
	}
	// MilliValue is wrong for what is far below 0.
	d := q.AsDec()
	exact := new(big.Rat).SetInt(d.UnscaledBig())
	exact.Mul(exact, decimal("1", -int(d.Scale())))
	milli, ok := thousandths(exact, true)
	return amount{milli: milli, format: q.Format}, ok
}

// like gives an amount that was a plain number the format of the other operand.
func (a amount) like(b amount) amount {
	if a.format == "" {
		a.format = b.format
	}
	return a
}

// plus adds; the result is written as the first, unless that is 0.
func (a amount) plus(b amount) (amount, bool) {
	sum := a.milli + b.milli
	if b.milli != 0 && (b.milli > 0) != (sum > a.milli) {
		return amount{}, false
	}
	if a.milli == 0 {
		a.format = b.format
	}
	return amount{milli: sum, format: a.format}, true
}

// less subtracts, and is written as plus is.
func (a amount) less(b amount) (amount, bool) {
	difference := a.milli - b.milli
	if b.milli != 0 && (b.milli > 0) != (difference < a.milli) {
		return amount{}, false
	}
	if a.milli == 0 {
		a.format = b.format
	}
	return amount{milli: difference, format: a.format}, true
}

// minus negates.
func (a amount) minus() (amount, bool) {
	return amount{milli: -a.milli, format: a.format}, a.milli != math.MinInt64
}

// times multiplies with a fraction and drops what is finer than thousandths.
func (a amount) times(numerator, denominator *big.Int) (amount, bool) {
	product := new(big.Int).Mul(big.NewInt(a.milli), numerator)
	product.Quo(product, denominator)
	return amount{milli: product.Int64(), format: a.format}, product.IsInt64()
}
