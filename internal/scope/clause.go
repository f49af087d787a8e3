package scope

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// namespaceName is the key of the namespace's name among the keys of pod labels. No label has it: a pod may have the
// label that namespaces have for their names.
const namespaceName = corev1.LabelMetadataName + "/"

// clause selects the pods for which all of its terms hold. Without terms it selects all.
type clause struct {
	// labels of the pod.
	labels map[string]term
	// namespace is about its name.
	namespace term
}

// key identifies a clause, but for the values of one label, or of namespaceName.
func (c clause) key(except string) string {
	var b strings.Builder
	if except != namespaceName {
		b.WriteString(c.namespace.key())
	}
	for _, k := range slices.Sorted(maps.Keys(c.labels)) {
		b.WriteString(";" + k + "=")
		if k != except {
			b.WriteString(c.labels[k].key())
		}
	}
	return b.String()
}

// merged returns fewer clauses that together select the same: clauses that differ in the values of one label become
// one.
func merged(all []clause) []clause {
	all = slices.Clone(all)
	with := map[string][]int{}
	for i, c := range all {
		for k, t := range c.labels {
			if t.in != nil {
				with[k] = append(with[k], i)
			}
		}
		if c.namespace.in != nil {
			with[namespaceName] = append(with[namespaceName], i)
		}
	}
	gone := make([]bool, len(all))
	for _, k := range slices.Sorted(maps.Keys(with)) {
		mergeBy(k, all, with[k], gone)
	}
	left := all[:0]
	for i, c := range all {
		if !gone[i] {
			left = append(left, c)
		}
	}
	keys := make(map[string]clause, len(left))
	for _, c := range left {
		keys[c.key("")] = c
	}
	left = left[:0]
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		left = append(left, keys[k])
	}
	return left
}

// mergeBy joins the values of one label, or of the namespace's name, of clauses that are the same otherwise. The first
// clause gets all values, the others are gone.
func mergeBy(key string, all []clause, some []int, gone []bool) {
	first := map[string]int{}
	values := map[int][]string{}
	for _, i := range some {
		if gone[i] {
			continue
		}
		rest := all[i].key(key)
		at, known := first[rest]
		if !known {
			first[rest], values[i] = i, slices.Clone(all[i].term(key).in)
			continue
		}
		values[at], gone[i] = append(values[at], all[i].term(key).in...), true
	}
	for i, joined := range values {
		all[i] = all[i].with(key, term{in: sorted(joined)})
	}
}

func (c clause) term(key string) term {
	if key == namespaceName {
		return c.namespace
	}
	return c.labels[key]
}

// with returns the clause with another term.
func (c clause) with(key string, t term) clause {
	if key == namespaceName {
		c.namespace = t
		return c
	}
	c.labels = maps.Clone(c.labels)
	c.labels[key] = t
	return c
}

// narrow reduces each clause to one label that it requires, and the namespace, so that it fits into a list. It selects
// no less. A clause that requires no label stays.
func narrow(all []clause) []clause {
	out := make([]clause, len(all))
	for i, c := range all {
		best, found := "", false
		for _, k := range slices.Sorted(maps.Keys(c.labels)) {
			t := c.labels[k]
			if t.needs() && (!found || fewer(t, c.labels[best])) {
				best, found = k, true
			}
		}
		if !found {
			out[i] = c
			continue
		}
		t := c.labels[best]
		out[i] = clause{labels: map[string]term{best: {in: t.in, exists: t.exists}}}
		if t.in != nil {
			out[i].namespace = term{in: c.namespace.in}
		}
	}
	return merged(out)
}

// fewer reports whether a term leaves fewer values than another.
func fewer(a, b term) bool {
	if (a.in == nil) != (b.in == nil) {
		return a.in != nil
	}
	return len(a.in) < len(b.in)
}

// wider returns few clauses that select no less: they require only that labels exist.
func wider(all []clause) []clause {
	out := make([]clause, 0, len(all))
	for _, c := range narrow(all) {
		w := clause{labels: map[string]term{}}
		for k, t := range c.labels {
			if t.needs() {
				w.labels[k] = term{exists: true}
			}
		}
		if len(w.labels) == 0 {
			return []clause{{}}
		}
		out = append(out, w)
	}
	return merged(out)
}

// byName splits requirements on the labels of namespaces: those on the name, and the others.
func byName(all labels.Requirements) (name, others labels.Requirements) {
	for i := range all {
		if all[i].Key() == corev1.LabelMetadataName {
			name = append(name, all[i])
			continue
		}
		others = append(others, all[i])
	}
	return name, others
}
