package scope

import (
	"maps"
	"slices"
	"strings"
)

// always is an expression that holds for all pods.
const always = "true"

// The frame of an expression. Labels may be missing as a whole. Their name is short because it comes often.
const head, tail = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, ", ")"

// form is one way to write the clauses of a group as conditions.
type form struct {
	lists []list
	all   []clause
	// others are further alternatives, in CEL.
	others []string
	// whole forms are one expression, and widened ones hold for more pods than the clauses select.
	whole, widened bool
}

// list selects by the value of an expression. API servers compile a list in little time, while the time for clauses
// grows with the square of their number.
type list struct {
	before, value, after string
	// of are the values, sorted.
	of []string
}

// formsOf returns the forms of clauses, the most exact one first.
func formsOf(clauses []clause, others []string, more []List) []form {
	all := merged(clauses)
	exact, wide := further(more)
	var forms []form
	if len(all) <= mostClauses {
		forms = append(forms, form{lists: exact, all: all, others: others, whole: true})
	}
	for i, same := range [][]clause{all, narrow(all), wider(all)} {
		lists, rest := listed(same)
		next := form{lists: slices.Concat(exact, lists), all: rest, others: others, widened: i > 0}
		if i > 1 {
			next.lists = slices.Concat(wide, lists)
		}
		forms = append(forms, next)
	}
	return forms
}

// further returns the lists of contributions, and shorter ones that select no less: by namespace.
func further(all []List) (exact, wide []list) {
	var namespaces []string
	for _, l := range all {
		exact = append(exact, list{l.Before, l.Value, l.After, l.Of})
		for _, value := range l.Of {
			namespaces = append(namespaces, NamespaceOf(value))
		}
	}
	if len(namespaces) > 0 {
		wide = []list{{value: "request.namespace", of: sorted(namespaces)}}
	}
	return exact, wide
}

// within returns the expressions of the first form that is within bounds, one for each entry. Widened reports that they
// hold for more pods than the clauses select.
func within(forms []form, b size) (expressions []string, widened bool) {
	for _, f := range forms {
		if all := f.expressions(b.letters); all != nil && len(all) <= b.parts && (len(all) <= 1 || !f.whole) {
			return all, f.widened
		}
	}
	return []string{always}, true
}

// expressions returns expressions that together hold for the pods of the form; nil if a part of it is too long for any.
func (f form) expressions(letters int) []string {
	w := &writer{letters: letters - len(head) - len(tail) - 32}
	for _, o := range f.others {
		w.letters -= len(o) + 4
	}
	for _, l := range f.lists {
		w.list(l)
	}
	for _, c := range f.all {
		text := c.expression()
		if text == "" {
			return []string{always}
		}
		w.operand(text)
	}
	if w.failed {
		return nil
	}
	all := []string{}
	for _, operands := range w.done() {
		all = append(all, head+strings.Join(operands, " || ")+tail)
	}
	if len(f.others) > 0 {
		if len(all) == 0 {
			all = append(all, strings.Join(f.others, " || "))
		} else {
			all[0] = strings.Join(slices.Concat(all[:1], f.others), " || ")
		}
	}
	return all
}

// writer distributes operands among expressions.
type writer struct {
	// letters that an expression has room for.
	letters int

	all    [][]string
	now    []string
	length int
	failed bool
}

// operand adds an operand to the expression that is written, or starts the next one.
func (w *writer) operand(text string) {
	n := len(text) + len(" || ")
	w.failed = w.failed || n > w.letters
	if len(w.now) > 0 && (w.length+n > w.letters || len(w.now) >= mostClauses) {
		w.all, w.now, w.length = append(w.all, w.now), nil, 0
	}
	w.now, w.length = append(w.now, text), w.length+n
}

// list adds a list, in pieces where it is long.
func (w *writer) list(l list) {
	frame := len(l.before) + len(l.value) + len(l.after) + 16
	for rest := l.of; len(rest) > 0; {
		room, n := w.letters-frame, 0
		if left := w.letters - w.length - frame; left > w.letters/4 && len(w.now) < mostClauses {
			room = left
		}
		for ; n < len(rest) && (n == 0 || room >= len(rest[n])+3); n++ {
			room -= len(rest[n]) + 3
		}
		w.operand(l.before + oneOf(l.value, rest[:n]) + l.after)
		rest = rest[n:]
	}
}

func (w *writer) done() [][]string {
	if len(w.now) > 0 {
		return append(w.all, w.now)
	}
	return w.all
}

// expression is over the labels l; empty if the clause selects all.
func (c clause) expression() string {
	var parts []string
	if n := c.namespace; n.in != nil || n.out != nil {
		parts = append(parts, flag(n.in == nil, "!")+"("+oneOf("request.namespace", append(n.in, n.out...))+")")
	}
	for _, k := range slices.Sorted(maps.Keys(c.labels)) {
		parts = append(parts, c.labels[k].expression(k))
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, " && ") + ")"
}

func (t term) expression(key string) string {
	there := quote(key) + " in l"
	value := "l[" + quote(key) + "]"
	switch {
	case t.absent:
		return "!(" + there + ")"
	case t.in != nil:
		return there + " && " + oneOf(value, t.in)
	case t.exists && t.out != nil:
		return there + " && !(" + oneOf(value, t.out) + ")"
	case t.out != nil:
		return "!(" + there + " && " + oneOf(value, t.out) + ")"
	}
	return there
}

func oneOf(value string, of []string) string {
	if len(of) == 1 {
		return value + " == " + quote(of[0])
	}
	quoted := make([]string, len(of))
	for i, v := range of {
		quoted[i] = quote(v)
	}
	return value + " in [" + strings.Join(quoted, ",") + "]"
}

// quote returns a literal. Labels have nothing to escape, or could not be read.
func quote(s string) string {
	if !strings.ContainsAny(s, "\\'\n\r") {
		return "'" + s + "'"
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
