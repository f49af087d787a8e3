package scope

import (
	"maps"
	"slices"
	"strings"
)

// condition returns an expression in CEL that holds for the pods that any of the clauses selects; empty without clauses. Widened
// reports that it holds for more pods, because the exact expression is too long.
func condition(all []clause) (expression string, widened bool) {
	exact, rest := listed(all)
	shorter, left := listed(narrow(all))
	keys, others := listed(wider(all))
	for i, form := range []struct {
		lists  lists
		single []clause
	}{{single: all}, {exact, rest}, {shorter, left}, {keys, others}} {
		if len(form.single) > mostClauses {
			continue
		}
		if e := form.lists.or(form.single); len(e) <= mostLetters {
			return e, i > 1
		}
	}
	return always, true
}

// always is an expression that holds for all pods.
const always = "true"

// lists select by one label each: API servers compile them in little time, while the time for clauses grows with the square of their
// number.
type lists struct {
	// keys, key=value, and namespace/key=value.
	keys, pairs, scoped []string
}

// listed moves the clauses of one label into lists.
func listed(all []clause) (lists, []clause) {
	var l lists
	var rest []clause
	for _, c := range all {
		if !l.take(c) {
			rest = append(rest, c)
		}
	}
	l.keys, l.pairs, l.scoped = sorted(l.keys), sorted(l.pairs), sorted(l.scoped)
	return l, rest
}

func (l *lists) take(c clause) bool {
	if len(c.labels) != 1 || c.namespace.out != nil {
		return false
	}
	for k, t := range c.labels {
		switch {
		case t.in == nil && (!t.exists || t.out != nil || c.namespace.in != nil):
			return false
		case t.in == nil:
			l.keys = append(l.keys, k)
		case c.namespace.in == nil:
			for _, v := range t.in {
				l.pairs = append(l.pairs, k+"="+v)
			}
		default:
			for _, n := range c.namespace.in {
				for _, v := range t.in {
					l.scoped = append(l.scoped, n+"/"+k+"="+v)
				}
			}
		}
	}
	return true
}

// or returns the condition for the lists and the other clauses.
func (l lists) or(all []clause) string {
	var parts []string
	for _, list := range []struct {
		value string
		of    []string
	}{{"k", l.keys}, {"k + '=' + l[k]", l.pairs}, {"request.namespace + '/' + k + '=' + l[k]", l.scoped}} {
		if len(list.of) > 0 {
			parts = append(parts, "l.exists(k, "+oneOf("("+list.value+")", list.of)+")")
		}
	}
	for _, c := range all {
		part := c.expression()
		if part == "" {
			return always
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	// Labels may be missing as a whole. Their name is short because it comes often.
	return "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, " + strings.Join(parts, " || ") + ")"
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
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
