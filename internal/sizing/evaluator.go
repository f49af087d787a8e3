package sizing

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxLength of a text, in bytes.
	maxLength = 4096
	// maxDepth of parentheses, functions and unary minus in each other.
	maxDepth = 100
	// maxExponent of a number keeps the number within maxBits.
	maxExponent = 100
	// piece is how much of the text an error quotes.
	piece = 20
)

// evaluator reads an expression by recursive descent, one token ahead, and computes it on the way. After the first
// error it is at the end of the text, so that each method returns.
type evaluator struct {
	text    string
	given   corev1.ResourceList
	isCheck bool
	err     error

	// token is the next token, and at its place; the token is empty at the end of the text.
	token string
	at    int
	depth int
}

// fail records the first error.
func (e *evaluator) fail(reason Reason, at int, expected, found string) value {
	if e.err == nil {
		e.err = &ExpressionError{reason, fmt.Sprintf("at %d: expected %s, found %s", at, expected, found)}
	}
	e.token, e.at = "", len(e.text)
	return value{}
}

func (e *evaluator) overflow(at int, found string) value {
	return e.fail(Overflow, at, "a value that can be held", found)
}

func (e *evaluator) unexpected(expected string) value {
	found := "the end"
	if e.token != "" {
		found = quote(e.token)
	}
	return e.fail(Syntax, e.at, expected, found)
}

func quote(text string) string {
	if len(text) > piece {
		return fmt.Sprintf("%q...", text[:piece])
	}
	return fmt.Sprintf("%q", text)
}

// advance moves to the next token: a number with its unit or exponent, a name, or a single sign.
func (e *evaluator) advance() {
	rest := strings.TrimLeft(e.text[e.at+len(e.token):], " \t\r\n")
	e.at = len(e.text) - len(rest)
	size := 0
	switch {
	case rest == "" || e.err != nil:
		e.token = ""
		return
	case isDigit(rest[0]), rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		digits, suffix, exponent := cutNumber(rest)
		size = len(digits) + len(suffix) + len(exponent)
	case isLetter(rest[0]):
		size = span(rest, func(b byte) bool { return isLetter(b) || isDigit(b) })
	default:
		_, size = utf8.DecodeRuneInString(rest)
	}
	e.token = rest[:size]
}

// take moves past a sign, and fails at another token.
func (e *evaluator) take(sign string) {
	if e.token != sign {
		e.unexpected(strconv.Quote(sign))
	}
	e.advance()
}

// sum reads products with + and - between them.
func (e *evaluator) sum() value { return e.chain(e.product, "+", "-") }

// product reads factors with * and / between them.
func (e *evaluator) product() value { return e.chain(e.factor, "*", "/") }

func (e *evaluator) chain(part func() value, operators ...string) value {
	left := part()
	for slices.Contains(operators, e.token) {
		operator, at := e.token, e.at
		e.advance()
		left = e.operate(operator, at, left, part())
	}
	return left
}

// factor reads a value with an optional minus before it.
func (e *evaluator) factor() value {
	e.depth++
	defer func() { e.depth-- }()
	if e.depth > maxDepth {
		return e.fail(Limit, e.at, fmt.Sprintf("at most %d in each other", maxDepth), "more")
	}
	if e.token != "-" {
		return e.value()
	}
	at := e.at
	e.advance()
	return e.negate(at, e.factor())
}

// value reads a number, a quantity, a variable, a function or an expression in parentheses.
func (e *evaluator) value() value {
	token, at := e.token, e.at
	switch {
	case token == "(":
		e.advance()
		inside := e.sum()
		e.take(")")
		return inside
	case token != "" && (isDigit(token[0]) || token[0] == '.' && len(token) > 1):
		e.advance()
		return e.number(token, at)
	case token == "" || !isLetter(token[0]):
		return e.unexpected(`a number, a quantity, cpu, memory, max, min, "-" or "("`)
	}
	switch lower := strings.ToLower(token); lower {
	case "cpu", "memory":
		e.advance()
		return e.variable(corev1.ResourceName(lower), at)
	case "max", "min":
		e.advance()
		e.take("(")
		left := e.sum()
		e.take(",")
		right := e.sum()
		e.take(")")
		return e.operate(lower, at, left, right)
	}
	return e.fail(Undefined, at, "cpu, memory, max or min", quote(token))
}

// number returns the value of a number or of a quantity, and reads the percent sign that may follow a number.
func (e *evaluator) number(token string, at int) value {
	digits, suffix, exponent := cutNumber(token)
	n, ok := new(big.Rat).SetString(digits)
	switch isMalformed := strings.Trim(exponent, "+-") == ""; {
	case !ok:
		return e.overflow(at, quote(token))
	case suffix == "":
	case suffix == "e" || suffix == "E":
		if isMalformed {
			n = new(big.Rat) // stored objects rely on malformed numbers that count as 0
			break
		}
		if power, err := strconv.Atoi(exponent); err != nil || max(power, -power) > maxExponent {
			return e.fail(Overflow, at, fmt.Sprintf("an exponent of at most %d", maxExponent), quote(token))
		}
		n, _ = n.SetString(token)
	default:
		factor, format, known := unit(suffix)
		if !known {
			n = new(big.Rat) // as above
			break
		}
		milli, fit := thousandths(n.Mul(n, factor), true)
		if !fit {
			return e.overflow(at, quote(token))
		}
		return value{milli: milli, format: format}
	}
	if e.token == "%" {
		e.advance()
		n = new(big.Rat).Quo(n, big.NewRat(100, 1))
	}
	if !fits(n) {
		return e.overflow(at, quote(token))
	}
	return value{number: n}
}

// cutNumber returns the digits at the beginning of a text, with at most one point, the letters that follow, and the
// exponent that follows an e.
func cutNumber(text string) (digits, suffix, exponent string) {
	size := span(text, isDigit)
	if size < len(text) && text[size] == '.' {
		size += 1 + span(text[size+1:], isDigit)
	}
	digits, text = text[:size], text[size:]
	suffix = text[:span(text, isLetter)]
	if text = text[len(suffix):]; suffix != "e" && suffix != "E" {
		return digits, suffix, ""
	}
	sign := 0
	if text != "" && (text[0] == '+' || text[0] == '-') {
		sign = 1
	}
	return digits, suffix, text[:sign+span(text[sign:], isDigit)]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' }

// span counts the leading bytes that are in a set.
func span(text string, in func(byte) bool) int {
	for i := range len(text) {
		if !in(text[i]) {
			return i
		}
	}
	return len(text)
}
