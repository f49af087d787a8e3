package scope

import (
	"maps"
	"slices"
	"strings"
)

// separator is in no label value and in no name of a namespace.
const separator = "/"

// NamespaceOf returns the namespace of a value of a List.
func NamespaceOf(value string) string {
	namespace, _, _ := strings.Cut(value, separator)
	return namespace
}

// listed moves clauses into lists: of keys, of keys with values, and of the values of several labels. The rest stays.
func listed(all []clause) (lists []list, rest []clause) {
	l := lister{tuples: map[string]*list{}}
	for _, c := range all {
		if !l.single(c) && !l.several(c) {
			rest = append(rest, c)
		}
	}
	for _, one := range []list{
		{"l.exists(k, ", "(k)", ")", sorted(l.keys)},
		{"l.exists(k, ", "(k + '=' + l[k])", ")", sorted(l.pairs)},
		{"l.exists(k, ", "(request.namespace + '/' + k + '=' + l[k])", ")", sorted(l.scoped)},
	} {
		if len(one.of) > 0 {
			lists = append(lists, one)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.tuples)) {
		l.tuples[id].of = sorted(l.tuples[id].of)
		lists = append(lists, *l.tuples[id])
	}
	return lists, rest
}

type lister struct {
	// keys, key=value, and namespace/key=value.
	keys, pairs, scoped []string
	// tuples of values, by what is compared with them.
	tuples map[string]*list
}

// single takes a clause of one label.
func (l *lister) single(c clause) bool {
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
					l.scoped = append(l.scoped, n+separator+k+"="+v)
				}
			}
		}
	}
	return true
}

// several takes a clause of several labels, each with the values that are accepted.
func (l *lister) several(c clause) bool {
	if len(c.labels) < 2 || c.namespace.out != nil {
		return false
	}
	var there, values []string
	tuples := []string{""}
	by := func(value string, in []string) bool {
		if in == nil || len(tuples)*len(in) > mostTuples {
			return false
		}
		next := make([]string, 0, len(tuples)*len(in))
		for _, t := range tuples {
			for _, v := range in {
				next = append(next, t+flag(len(values) > 0, separator)+v)
			}
		}
		tuples, values = next, append(values, value)
		return true
	}
	if c.namespace.in != nil && !by("request.namespace", c.namespace.in) {
		return false
	}
	for _, k := range slices.Sorted(maps.Keys(c.labels)) {
		if !by("l["+quote(k)+"]", c.labels[k].in) {
			return false
		}
		there = append(there, quote(k)+" in l && ")
	}
	value := "(" + strings.Join(values, " + '"+separator+"' + ") + ")"
	if l.tuples[value] == nil {
		l.tuples[value] = &list{before: "(" + strings.Join(there, ""), value: value, after: ")"}
	}
	l.tuples[value].of = append(l.tuples[value].of, tuples...)
	return true
}
