package scale

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Prioritise orders items, stably, by a priority strategy: pods with a larger sum of weights first, or by the
// number at the end of a label's value, larger first. With order terms the pods that have none of the labels come
// first of all. A selector that cannot be read selects nothing; the strategy is otherwise followed, and the error
// names the term.
func Prioritise[T any](items []T, labelsOf func(T) map[string]string, s *kruise.UpdatePriorityStrategy) error {
	switch {
	case s == nil:
		return nil
	case len(s.WeightPriority) > 0:
		return byWeight(items, labelsOf, s.WeightPriority)
	case len(s.OrderPriority) > 0:
		byOrder(items, labelsOf, s.OrderPriority)
	}
	return nil
}

func byWeight[T any](items []T, labelsOf func(T) map[string]string, terms []kruise.UpdatePriorityWeightTerm) error {
	var broken error
	selectors := make([]labels.Selector, len(terms))
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(&terms[i].MatchSelector)
		if err != nil {
			broken = cmp.Or(broken, fmt.Errorf("weightPriority[%d].matchSelector: %w", i, err))
			selector = labels.Nothing()
		}
		selectors[i] = selector
	}
	sortStably(items, func(item T) []int64 {
		var sum int64
		for i, selector := range selectors {
			if selector.Matches(labels.Set(labelsOf(item))) {
				sum += int64(terms[i].Weight)
			}
		}
		return []int64{-sum}
	})
	return broken
}

func byOrder[T any](items []T, labelsOf func(T) map[string]string, terms []kruise.UpdatePriorityOrderTerm) {
	sortStably(items, func(item T) []int64 {
		set := labelsOf(item)
		for i, term := range terms {
			if value, ok := set[term.OrderedKey]; ok {
				return []int64{int64(i), -trailingNumber(value)}
			}
		}
		return []int64{-1, 0}
	})
}

// sortStably sorts by keys that are computed once an item.
func sortStably[T any](items []T, keys func(T) []int64) {
	type keyed struct {
		item T
		keys []int64
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		all[i] = keyed{item: item, keys: keys(item)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return slices.Compare(a.keys, b.keys) })
	for i := range all {
		items[i] = all[i].item
	}
}

// trailingNumber is the number at the end of a text; 0 if there is none, or none that fits.
func trailingNumber(text string) int64 {
	start := len(text)
	for start > 0 && text[start-1] >= '0' && text[start-1] <= '9' {
		start--
	}
	n, err := strconv.ParseInt(text[start:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Scatter spreads, in an order of candidates, those that carry a label evenly among the others, so that no stretch of
// a rollout hits all of them. all are the items that exist, candidates included; what is already past counts for
// the proportion. The order is otherwise kept.
func Scatter[T any](candidates, all []T, labelsOf func(T) map[string]string, s kruise.UpdateScatterStrategy) []T {
	if len(s) == 0 || len(candidates) <= 1 {
		return candidates
	}
	for _, term := range scatterTerms(candidates, labelsOf, s) {
		candidates = scatter(candidates, all, func(item T) bool {
			value, ok := labelsOf(item)[term.Key]
			return ok && value == term.Value
		})
	}
	return candidates
}

// maxTerms bounds the terms that scatter. Each one walks all items.
const maxTerms = 256

// scatterTerms are the terms that match a candidate, the commonest first. One that matches a single candidate leaves
// the order as it is; of more than maxTerms others, the commonest count.
func scatterTerms[T any](
	candidates []T, labelsOf func(T) map[string]string, s kruise.UpdateScatterStrategy,
) []kruise.UpdateScatterTerm {
	times, count := map[kruise.UpdateScatterTerm]int{}, map[kruise.UpdateScatterTerm]int{}
	for _, term := range s {
		times[term]++
	}
	for _, item := range candidates {
		for key, value := range labelsOf(item) {
			if term := (kruise.UpdateScatterTerm{Key: key, Value: value}); times[term] > 0 {
				count[term] += times[term]
			}
		}
	}
	terms := slices.DeleteFunc(slices.Clone(s), func(t kruise.UpdateScatterTerm) bool { return count[t] <= 1 })
	slices.SortStableFunc(terms, func(a, b kruise.UpdateScatterTerm) int { return cmp.Compare(count[b], count[a]) })
	return terms[:min(len(terms), maxTerms)]
}

func scatter[T any](candidates, all []T, matches func(T) bool) []T {
	var matching, plain []T
	for _, item := range candidates {
		if matches(item) {
			matching = append(matching, item)
		} else {
			plain = append(plain, item)
		}
	}
	if len(matching) <= 1 || len(plain) <= 1 {
		return candidates
	}
	// One of those that match closes the rollout.
	last := matching[len(matching)-1]
	matching = matching[:len(matching)-1]
	totalMatching, totalPlain := -1, 0
	for _, item := range all {
		if matches(item) {
			totalMatching++
		} else {
			totalPlain++
		}
	}
	out := make([]T, 0, len(candidates))
	groups := groupsOf(len(matching), len(plain), totalMatching, totalPlain)
	out = append(out, plain[:groups.first]...)
	plain = plain[groups.first:]
	for range groups.count {
		out = append(append(out, matching[:groups.matching]...), plain[:groups.plain]...)
		matching, plain = matching[groups.matching:], plain[groups.plain:]
	}
	return append(append(append(out, matching...), plain...), last)
}

// mix is a sequence: first plain items, then count times some that match and some that are plain.
type mix struct{ first, count, matching, plain int }

// groupsOf mixes the candidates as they are mixed among all items. When plain candidates are few for that, they mix
// by themselves; when there are more, the surplus comes first.
func groupsOf(matching, plain, totalMatching, totalPlain int) mix {
	// totalPlain/totalMatching >= plain/matching, without fractions.
	if totalMatching <= 0 || totalPlain*matching >= plain*totalMatching {
		n := min(matching, plain)
		g := mix{matching: divideRounded(matching, n), plain: divideRounded(plain, n)}
		g.count = min(n, matching/max(1, g.matching), plain/max(1, g.plain)) // rounded, there may be too few
		return g
	}
	n := min(totalMatching, totalPlain)
	g := mix{matching: divideRounded(totalMatching, n), plain: divideRounded(totalPlain, n)}
	g.count = min(matching/g.matching, plain/g.plain)
	g.first = plain - g.count*g.plain
	return g
}

// divideRounded is a/b, half away from zero; both are positive.
func divideRounded(a, b int) int {
	return (2*a + b) / (2 * b)
}
