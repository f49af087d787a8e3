package sizing

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// form is the kind of a token.
type form byte

const (
	end      form = iota
	number        // a number
	quantity      // a number with a unit
	name          // a variable or function
	symbol        // anything else, by its text
)

// token is the smallest unit of the language.
type token struct {
	form form
	at   int
	text string

	number *big.Rat // of a number
	amount amount   // of a quantity
}

// found describes a token in an error.
func (t token) found() string {
	if t.form == end {
		return "the end"
	}
	return quote(t.text)
}

// scan returns the token at or after a place in the text. The place after the token is at+len(text).
func (p *parser) scan(at int) (token, error) {
	for at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[at]) >= 0 {
		at++
	}
	if at == len(p.text) {
		return token{form: end, at: at}, nil
	}
	rest := p.text[at:]
	switch first := rest[0]; {
	case isDigit(first), first == '.' && len(rest) > 1 && isDigit(rest[1]):
		return p.scanNumber(at)
	case isLetter(first):
		return token{form: name, at: at, text: rest[:span(rest, func(b byte) bool { return isLetter(b) || isDigit(b) })]}, nil
	}
	_, size := utf8.DecodeRuneInString(rest)
	return token{form: symbol, at: at, text: rest[:size]}, nil
}

// scanNumber reads digits with at most one point, and an exponent or a unit.
func (p *parser) scanNumber(at int) (token, error) {
	rest := p.text[at:]
	size := span(rest, isDigit)
	if size < len(rest) && rest[size] == '.' {
		size++
		size += span(rest[size:], isDigit)
	}
	digits := rest[:size]
	letters := span(rest[size:], isLetter)
	suffix := rest[size : size+letters]
	if suffix != "e" && suffix != "E" {
		return p.withUnit(token{at: at, text: rest[:size+letters]}, digits, suffix)
	}
	size++
	sign := size
	if size < len(rest) && (rest[size] == '+' || rest[size] == '-') {
		size++
	}
	exponent := span(rest[size:], isDigit)
	size += exponent
	t := token{form: number, at: at, text: rest[:size]}
	if exponent == 0 {
		return p.malformed(t, "an exponent")
	}
	power, err := strconv.Atoi(rest[sign:size])
	if err != nil || power > maxExponent || power < -maxExponent {
		return token{}, &ExpressionError{
			Reason: Overflow, At: at, Expected: "an exponent of at most " + strconv.Itoa(maxExponent), Found: quote(t.text),
		}
	}
	t.number = decimal(digits, power)
	return t, held(t)
}

// withUnit completes a token that has no exponent.
func (p *parser) withUnit(t token, digits, suffix string) (token, error) {
	n := decimal(digits, 0)
	if suffix == "" {
		t.form, t.number = number, n
		return t, held(t)
	}
	of, format, known := unit(suffix)
	if !known {
		return p.malformed(t, "one of the units m k M G T P Ki Mi Gi Ti Pi")
	}
	milli, ok := thousandths(n.Mul(n, of), true)
	if !ok {
		return token{}, overflow(t.at, quote(t.text))
	}
	t.form, t.amount = quantity, amount{milli: milli, format: format}
	return t, nil
}

// malformed returns the token of a malformed number, which counts as 0 unless ExpressionOptions.Strict is set.
func (p *parser) malformed(t token, expected string) (token, error) {
	if p.options.Strict {
		return token{}, &ExpressionError{Reason: Syntax, At: t.at, Expected: expected, Found: quote(t.text)}
	}
	t.form, t.number = number, new(big.Rat)
	return t, nil
}

// held checks that a number is not too large.
func held(t token) error {
	if !fits(t.number) {
		return overflow(t.at, quote(t.text))
	}
	return nil
}

func overflow(at int, found string) error {
	return &ExpressionError{Reason: Overflow, At: at, Expected: "a value that can be held", Found: found}
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
