package sizing

import (
	"math/big"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxLength of a text, in bytes.
	maxLength = 4096
	// maxDepth of parentheses, functions and unary minus in each other.
	maxDepth = 100
)

// parser reads a text from the left to the right, one token ahead.
type parser struct {
	text    string
	options ExpressionOptions
	next    token
	depth   int
	uses    map[corev1.ResourceName]bool
}

// advance moves to the next token.
func (p *parser) advance() error {
	next, err := p.scan(p.next.at + len(p.next.text))
	p.next = next
	return err
}

// ahead reports whether the next token is one of these symbols.
func (p *parser) ahead(symbols string) bool {
	return p.next.form == symbol && strings.Contains(symbols, p.next.text)
}

// take consumes a symbol, or fails at another token.
func (p *parser) take(wanted string) error {
	if !p.ahead(wanted) {
		return p.unexpected(strconv.Quote(wanted))
	}
	return p.advance()
}

func (p *parser) unexpected(expected string) error {
	return &ExpressionError{Reason: Syntax, At: p.next.at, Expected: expected, Found: p.next.found()}
}

// whole reads the text to its end.
func (p *parser) whole() (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	result, err := p.sum()
	if err != nil {
		return operand{}, err
	}
	if p.next.form != end {
		return operand{}, p.unexpected("an operator or the end")
	}
	return result, nil
}

// sum reads products with + and - between them.
func (p *parser) sum() (operand, error) {
	return p.chain("+-", p.product)
}

// product reads factors with * and / between them.
func (p *parser) product() (operand, error) {
	return p.chain("*/", p.factor)
}

// chain reads parts with any of the signs between them, and combines them from the left.
func (p *parser) chain(signs string, part func() (operand, error)) (operand, error) {
	left, err := part()
	for err == nil && p.ahead(signs) {
		o := operator{sign: p.next.text, at: p.next.at}
		if err = p.advance(); err != nil {
			break
		}
		var right operand
		if right, err = part(); err != nil {
			break
		}
		left, err = o.between(left, right)
	}
	return left, err
}

// factor reads a value with an optional minus before it.
func (p *parser) factor() (operand, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return operand{}, &ExpressionError{
			Reason: Limit, At: p.next.at, Expected: "at most " + strconv.Itoa(maxDepth) + " in each other", Found: "more",
		}
	}
	if !p.ahead("-") {
		return p.value()
	}
	o := operator{sign: "-", at: p.next.at}
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	of, err := p.factor()
	if err != nil {
		return operand{}, err
	}
	return o.negative(of), nil
}

// value reads a number, a quantity, a variable, a function or an expression in parentheses.
func (p *parser) value() (operand, error) {
	t := p.next
	switch {
	case t.form == number:
		return p.percent(t)
	case t.form == quantity:
		return operand{tree: &node{operation: literal, at: t.at, amount: t.amount}}, p.advance()
	case t.form == name:
		return p.named(t)
	case p.ahead("("):
		return p.enclosed()
	}
	return operand{}, p.unexpected(`a number, a quantity, cpu, memory, max, min, "-" or "("`)
}

// percent reads a number, and the percent sign that may follow it.
func (p *parser) percent(t token) (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if !p.ahead("%") {
		return operand{number: t.number}, nil
	}
	n := new(big.Rat).Quo(t.number, big.NewRat(100, 1))
	if !fits(n) {
		return operand{}, overflow(t.at, quote(t.text))
	}
	return operand{number: n}, p.advance()
}

func (p *parser) enclosed() (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	inside, err := p.sum()
	if err != nil {
		return operand{}, err
	}
	return inside, p.take(")")
}

// named reads a variable, or a function and its two arguments.
func (p *parser) named(t token) (operand, error) {
	switch lower := strings.ToLower(t.text); lower {
	case "cpu", "memory":
		variableName := corev1.ResourceName(lower)
		p.uses[variableName] = true
		return operand{tree: &node{operation: variable, at: t.at, name: variableName}}, p.advance()
	case "max", "min":
		if err := p.advance(); err != nil {
			return operand{}, err
		}
		return p.call(operator{sign: lower, at: t.at})
	}
	return operand{}, &ExpressionError{Reason: Undefined, At: t.at, Expected: "cpu, memory, max or min", Found: t.found()}
}

func (p *parser) call(o operator) (operand, error) {
	if err := p.take("("); err != nil {
		return operand{}, err
	}
	left, err := p.sum()
	if err != nil {
		return operand{}, err
	}
	if err = p.take(","); err != nil {
		return operand{}, err
	}
	right, err := p.sum()
	if err != nil {
		return operand{}, err
	}
	if err = p.take(")"); err != nil {
		return operand{}, err
	}
	return o.between(left, right)
}
