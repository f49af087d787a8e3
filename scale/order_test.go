package scale_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/growth"
)

// TestScatter has _ for a plain item and a letter for one that carries the label of that name.
func TestScatter(t *testing.T) {
	cases := map[string]struct {
		items string
		want  []int
	}{
		"two at the end":   {"____AA", []int{4, 0, 1, 2, 3, 5}},
		"as many":          {"___AAA", []int{3, 0, 1, 4, 2, 5}},
		"scattered enough": {"___A__A", []int{3, 0, 1, 2, 4, 5, 6}},
		"twice as many":    {"______AAA", []int{6, 0, 1, 2, 7, 3, 4, 5, 8}},
		"more than plain":  {"__AAAA", []int{2, 3, 0, 4, 1, 5}},
		"one":              {"___A", []int{0, 1, 2, 3}},
		"one plain":        {"_AAA", []int{0, 1, 2, 3}},
		"none":             {"____", []int{0, 1, 2, 3}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := scale.Scatter(indices(len(c.items)), indices(len(c.items)), labelsIn(c.items),
				kruise.UpdateScatterStrategy{{Key: "is", Value: "A"}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.items, diff)
			}
		})
	}
}

func TestPrioritise(t *testing.T) {
	weights := &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
		{Weight: 20, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"is": "A"}}},
		{Weight: 10, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"is": "B"}}},
	}}
	t.Run("weight", func(t *testing.T) {
		items := indices(6)
		if err := scale.Prioritise(items, labelsIn("_BA_AB"), weights); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{2, 4, 1, 5, 0, 3}, items); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a broken selector", func(t *testing.T) {
		s := weights.DeepCopy()
		s.WeightPriority[0].MatchSelector = metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "is", Operator: "Like"}},
		}
		items := indices(3)
		err := scale.Prioritise(items, labelsIn("AB_"), s)
		if err == nil || !strings.Contains(err.Error(), "weightPriority[0].matchSelector") {
			t.Errorf("the term is not named: %v", err)
		}
		if diff := cmp.Diff([]int{1, 0, 2}, items); diff != "" {
			t.Errorf("the other terms hold (-want +got):\n%s", diff)
		}
	})
	t.Run("order", func(t *testing.T) {
		sets := []map[string]string{
			{"key2": "o-7"}, {"key1": "o-5"}, {}, {"key1": "o-20"}, {"key1": "none"}, {"key1": "o-10", "key2": "o-99"}, {
				"key1": "o-99999999999999999999",
			},
		}
		items := indices(len(sets))
		s := &kruise.UpdatePriorityStrategy{OrderPriority: []kruise.UpdatePriorityOrderTerm{
			{OrderedKey: "key1"}, {OrderedKey: "key2"},
		}}
		if err := scale.Prioritise(items, func(i int) map[string]string { return sets[i] }, s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{2, 3, 5, 1, 4, 6, 0}, items); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for _, s := range []*kruise.UpdatePriorityStrategy{nil, {}} {
		items := indices(3)
		if err := scale.Prioritise(items, labelsIn("_BA"), s); err != nil || !slices.Equal(items, indices(3)) {
			t.Errorf("no strategy changes nothing: %v, %v", items, err)
		}
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func labelsIn(items string) func(int) map[string]string {
	return func(i int) map[string]string { return map[string]string{"is": items[i : i+1]} }
}

// FuzzScatter keeps every item, once, and the order among those alike.
func FuzzScatter(f *testing.F) {
	f.Add("__AAB_A", uint(2))
	f.Fuzz(func(t *testing.T, items string, past uint) {
		if len(items) > 200 {
			t.Skip()
		}
		all := indices(len(items))
		candidates := all[min(int(past%201), len(all)):]
		s := kruise.UpdateScatterStrategy{{Key: "is", Value: "A"}, {Key: "is", Value: "B"}}
		got := scale.Scatter(slices.Clone(candidates), all, labelsIn(items), s)
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		if !slices.Equal(sorted, candidates) && len(candidates) > 0 {
			t.Errorf("%q from %d: items were lost or made: %v", items, past, got)
		}
		one := scale.Scatter(slices.Clone(candidates), all, labelsIn(items), s[:1])
		matching := slices.DeleteFunc(slices.Clone(one), func(i int) bool { return items[i] != 'A' })
		if !slices.IsSorted(matching) {
			t.Errorf("%q from %d: those that match changed their order: %v", items, past, one)
		}
	})
}

// TestScatterGrowsWithTheTerms: twenty times the items and terms cost about twenty times as much.
func TestScatterGrowsWithTheTerms(t *testing.T) {
	growth.Linear(t, 200, 20, func(n int) func() {
		items, terms := make([]map[string]string, n), kruise.UpdateScatterStrategy{}
		for i := range items {
			items[i] = map[string]string{"pair": fmt.Sprint(i / 2)}
		}
		for i := range n {
			terms = append(terms, kruise.UpdateScatterTerm{Key: "pair", Value: fmt.Sprint(i)})
		}
		return func() {
			scale.Scatter(items, items, func(item map[string]string) map[string]string { return item }, terms)
		}
	})
}
