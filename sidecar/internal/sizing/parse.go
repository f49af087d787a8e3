package sizing

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxLength of a text, in bytes.
	maxLength = 4096
	// maxDepth of parentheses, functions and unary minus in each other.
	maxDepth = 100
	// maxExponent of a number keeps it within maxBits.
	maxExponent = 100
)

// parser reads a text from the left to the right, and computes what it reads. It keeps its first error, and is at the
// end of the text from then on.
type parser struct {
	text  string
	given corev1.ResourceList
	at    int
	depth int
	err   error
}

func (p *parser) unexpected(expected string) value {
	found := "the end"
	if next := p.word(); next != "" {
		found = quote(next)
	}
	return p.fail(p.at, expected, found)
}

// word skips white space, and returns the name, the number or the sign that follows; empty at the end.
func (p *parser) word() string {
	p.at += span(p.text[p.at:], func(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 })
	rest := p.text[p.at:]
	size := span(rest, func(b byte) bool { return isLetter(b) || isDigit(b) || b == '.' })
	if size == 0 {
		_, size = utf8.DecodeRuneInString(rest)
	}
	return rest[:size]
}

// accept reads one of these signs if it follows.
func (p *parser) accept(signs string) (sign string, at int) {
	next := p.word()
	if len(next) != 1 || !strings.Contains(signs, next) {
		return "", p.at
	}
	p.at++
	return next, p.at - 1
}

func (p *parser) require(sign string) {
	if read, _ := p.accept(sign); read == "" {
		p.unexpected(strconv.Quote(sign))
	}
}

// sum reads products with + and - between them.
func (p *parser) sum() value {
	left := p.product()
	for sign, at := p.accept("+-"); sign != ""; sign, at = p.accept("+-") {
		left = p.join(sign, at, left, p.product())
	}
	return left
}

// product reads factors with * and / between them.
func (p *parser) product() value {
	left := p.factor()
	for sign, at := p.accept("*/"); sign != ""; sign, at = p.accept("*/") {
		left = p.join(sign, at, left, p.factor())
	}
	return left
}

// factor reads a number, a quantity, a variable, a function or an expression in parentheses, with an optional minus.
func (p *parser) factor() value {
	p.depth++
	defer func() { p.depth-- }()
	next := p.word()
	if p.depth > maxDepth {
		return p.fail(p.at, "at most "+strconv.Itoa(maxDepth)+" in each other", "more")
	}
	if next != "" && (isDigit(next[0]) || next[0] == '.' && len(next) > 1 && isDigit(next[1])) {
		return p.number()
	}
	if next != "" && isLetter(next[0]) {
		return p.named()
	}
	if sign, at := p.accept("-"); sign != "" {
		return p.join("*", at, value{n: big.NewRat(-1, 1)}, p.factor())
	}
	if sign, _ := p.accept("("); sign != "" {
		inside := p.sum()
		p.require(")")
		return inside
	}
	return p.unexpected(`a number, a quantity, cpu, memory, max, min, "-" or "("`)
}

// named reads a variable, or a function and its two arguments.
func (p *parser) named() value {
	at := p.at
	name := p.take(func(b byte) bool { return isLetter(b) || isDigit(b) })
	switch lower := strings.ToLower(name); lower {
	case "cpu", "memory":
		return p.variable(at, corev1.ResourceName(lower))
	case "max", "min":
		p.require("(")
		left := p.sum()
		p.require(",")
		right := p.sum()
		p.require(")")
		return p.join(lower, at, left, right)
	}
	return p.fail(at, "cpu, memory, max or min", quote(name))
}

// number reads digits with at most one point, and an exponent, a unit or a percent sign. A number with a missing
// exponent or an unknown unit is 0.
func (p *parser) number() value {
	at := p.at
	digits := p.take(isDigit)
	if strings.HasPrefix(p.text[p.at:], ".") {
		p.at++
		digits += "." + p.take(isDigit)
	}
	suffix := p.take(isLetter)
	exponent := "0"
	if suffix == "e" || suffix == "E" {
		suffix, exponent = "", p.exponent()
	}
	power, err := strconv.Atoi(exponent)
	if exponent != "" && (err != nil || power > maxExponent || power < -maxExponent) {
		return p.fail(at, "an exponent of at most "+strconv.Itoa(maxExponent), quote(p.text[at:p.at]))
	}
	factor, format, known := unit(suffix)
	if exponent == "" || !known {
		suffix, digits, factor = "", "0", big.NewRat(1, 1)
	}
	n, _ := new(big.Rat).SetString("0" + digits + "e" + strconv.Itoa(power))
	v, ok := value{n: n.Mul(n, factor)}, fits(n)
	if suffix != "" {
		var milli int64
		milli, ok = thousandths(n, true)
		v = value{n: big.NewRat(milli, 1000), quantity: true, format: format}
	} else if percent, _ := p.accept("%"); percent != "" && ok {
		n.Quo(n, big.NewRat(100, 1))
		ok = fits(n)
	}
	if !ok {
		return p.fail(at, held, quote(p.text[at:p.at]))
	}
	return v
}

// exponent reads an integer; empty if there are no digits.
func (p *parser) exponent() string {
	at := p.at
	if rest := p.text[at:]; rest != "" && (rest[0] == '+' || rest[0] == '-') {
		p.at++
	}
	if p.take(isDigit) == "" {
		return ""
	}
	return p.text[at:p.at]
}

// unit returns the factor of a suffix, and the format of quantities with it.
func unit(suffix string) (factor *big.Rat, format resource.Format, known bool) {
	switch suffix {
	case "":
		return big.NewRat(1, 1), "", true
	case "m":
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
	n := int64(1)
	for range power + 1 {
		n *= base
	}
	return big.NewRat(n, 1), format, true
}

// take reads the bytes that are in a set.
func (p *parser) take(in func(byte) bool) string {
	taken := p.text[p.at : p.at+span(p.text[p.at:], in)]
	p.at += len(taken)
	return taken
}

// span counts the leading bytes that are in a set.
func span(text string, in func(byte) bool) int {
	for i := range len(text) {
		if !in(text[i]) {
			return i
		}
	}
	return len(text)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' }
