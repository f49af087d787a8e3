package rollout

import (
	"cmp"
	"slices"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// maxValues bounds the values by which * scatters pods. Each one walks all pods.
const maxValues = 256

// terms returns the terms of the strategy, with one term for each existing value in place of *. A value that at most one waiting pod has
// cannot change the order; of more than maxValues others the commonest count.
func (p *planner) terms(s kruise.UpdateScatterStrategy, waiting []*member) kruise.UpdateScatterStrategy {
	var terms, expanded kruise.UpdateScatterStrategy
	seen, counts := map[kruise.UpdateScatterTerm]bool{}, map[string]map[string]int{}
	for _, term := range s {
		if term.Value != "*" {
			if !seen[term] {
				seen[term] = true
				terms = append(terms, term)
			}
			continue
		}
		if counts[term.Key] == nil {
			counts[term.Key] = countValues(waiting, term.Key)
		}
		for _, m := range p.members {
			value, ok := m.pod.Labels[term.Key]
			one := kruise.UpdateScatterTerm{Key: term.Key, Value: value}
			if ok && counts[term.Key][value] > 1 && !seen[one] {
				seen[one] = true
				terms, expanded = append(terms, one), append(expanded, one)
			}
		}
	}
	if len(expanded) <= maxValues {
		return terms
	}
	slices.SortStableFunc(expanded, func(a, b kruise.UpdateScatterTerm) int {
		return cmp.Compare(counts[b.Key][b.Value], counts[a.Key][a.Value])
	})
	rare := map[kruise.UpdateScatterTerm]bool{}
	for _, term := range expanded[maxValues:] {
		rare[term] = true
	}
	return slices.DeleteFunc(terms, func(term kruise.UpdateScatterTerm) bool { return rare[term] })
}

// countValues returns how many pods have each value of a label.
func countValues(waiting []*member, key string) map[string]int {
	counts := map[string]int{}
	for _, m := range waiting {
		if value, ok := m.pod.Labels[key]; ok {
			counts[value]++
		}
	}
	return counts
}
