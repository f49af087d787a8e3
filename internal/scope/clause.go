package scope

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// clause selects pods: all of its terms must hold. Without any it selects all.
type clause struct {
	// labels of the pod.
	labels map[string]term
	// namespace is about its name.
	namespace term
}

// key tells clauses apart, but for the values of one label (or of the namespace, by its own key).
func (c clause) key(except string) string {
	var b strings.Builder
	if except != corev1.LabelMetadataName {
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

// merged are fewer clauses that select the same together: those that differ in the values of one label alone become one.
func merged(all []clause) []clause {
	keys := map[string]bool{corev1.LabelMetadataName: true}
	for _, c := range all {
		for k := range c.labels {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		all = mergedBy(k, all)
	}
	slices.SortFunc(all, func(a, b clause) int { return cmp.Compare(a.key(""), b.key("")) })
	return slices.CompactFunc(all, func(a, b clause) bool { return a.key("") == b.key("") })
}

// mergedBy joins the values that clauses ask of one label, or of the namespace's name.
func mergedBy(key string, all []clause) []clause {
	var out []clause
	at := map[string]int{}
	for _, c := range all {
		t := c.term(key)
		if t.in == nil {
			out = append(out, c)
			continue
		}
		rest := c.key(key)
		i, known := at[rest]
		if !known {
			at[rest] = len(out)
			out = append(out, c.with(key, term{in: slices.Clone(t.in)}))
			continue
		}
		joined := out[i].term(key)
		joined.in = append(joined.in, t.in...)
		out[i] = out[i].with(key, joined)
	}
	for _, i := range at {
		t := out[i].term(key)
		out[i] = out[i].with(key, term{in: sorted(t.in)})
	}
	return out
}

func (c clause) term(key string) term {
	if key == corev1.LabelMetadataName {
		return c.namespace
	}
	return c.labels[key]
}

// with is the clause with another term.
func (c clause) with(key string, t term) clause {
	if key == corev1.LabelMetadataName {
		c.namespace = t
		return c
	}
	c.labels = maps.Clone(c.labels)
	c.labels[key] = t
	return c
}

// wider are few clauses that select no less: they ask only which labels there are.
func wider(all []clause) []clause {
	out := make([]clause, 0, len(all))
	for _, c := range all {
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

// byName splits requirements on a namespace's labels: those on its name, and the others.
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
