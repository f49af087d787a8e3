package rollout

import (
	"github.com/kruisekit/kruisekit/api/kruise"
)

// terms returns the terms of the strategy, with one term for each existing value in place of *. Package scale bounds
// them.
func (p *planner) terms(s kruise.UpdateScatterStrategy) kruise.UpdateScatterStrategy {
	var terms kruise.UpdateScatterStrategy
	seen := map[kruise.UpdateScatterTerm]bool{}
	add := func(term kruise.UpdateScatterTerm) {
		if !seen[term] {
			seen[term] = true
			terms = append(terms, term)
		}
	}
	for _, term := range s {
		if term.Value != "*" {
			add(term)
			continue
		}
		for _, m := range p.members {
			if value, ok := m.pod.Labels[term.Key]; ok {
				add(kruise.UpdateScatterTerm{Key: term.Key, Value: value})
			}
		}
	}
	return terms
}
