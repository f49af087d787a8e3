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
