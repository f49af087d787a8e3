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

// updateCount moves instances from the side that has too many to the other.
func (p *planner) updateCount() {
	d := p.plan.Difference
	n, backward := int(abs(d.Update)), d.Update < 0
	if n == 0 || p.standstill(n) {
		return
	}
	b := Budget{Max: d.UpdateUnavailable, Strict: true}
	var candidates []*member
	for _, m := range p.members {
		if !m.available {
			b.Unavailable++
			if m.Updated != backward {
				b.UnderWay++
			}
		}
		if m.Updated == backward && !m.NotNow && !m.preparingDelete {
			candidates = append(candidates, m)
		}
	}
	orderUpdates(candidates)
	p.prioritise(candidates)
	candidates = p.scattered(candidates)
	p.repairFirst(candidates)
	// What waits for the end of its grace period still runs what it ran before: taken back in time, nothing restarts.
	bringForward(candidates, func(m *member) bool { return m.preparing || m.inGrace(p.in.Keys) })
	p.update(candidates[:min(n, len(candidates))], walk{Budget: b})
	p.plan.Backward = backward && len(p.plan.Update) > 0
}

// standstill reports whether updates do not run, and notes how many wait for that.
func (p *planner) standstill(waiting int) bool {
	switch p.in.Updates {
	case UpdatesPaused:
		p.noteWaiting(NotePaused, waiting, "to be updated: updates are paused")
		return true
	case UpdatesOnDelete:
		p.noteWaiting(NoteOnDelete, waiting, "to be deleted by the user, to come back updated")
		return true
	}
	return false
}

// isStopped reports whether updates do not run.
func (p *planner) isStopped() bool {
	return p.in.Updates == UpdatesPaused || p.in.Updates == UpdatesOnDelete
}

// orderUpdates puts those first that are missed least.
func orderUpdates(candidates []*member) {
	all := make([]standing, len(candidates))
	for i, m := range candidates {
		all[i] = newStanding(m)
	}
	sortStandings(all)
	for i := range candidates {
		candidates[i] = all[i].member
	}
}

func (p *planner) prioritise(candidates []*member) {
	if err := Prioritise(candidates, (*member).labels, p.in.Priority); err != nil {
		p.note(NotePriorityIgnored, "", err.Error())
	}
}

func (p *planner) scattered(candidates []*member) []*member {
	return Scatter(candidates, p.members, (*member).labels, p.in.Scatter)
}

// repairFirst brings forward what is not available, where that is wished.
func (p *planner) repairFirst(candidates []*member) {
	if p.in.UnavailableFirst {
		bringForward(candidates, func(m *member) bool { return !m.available || m.Impaired })
	}
}

// walk is a Budget of instances that something besides their pods can keep from serving.
type walk struct {
	Budget

	// gone is how many instances are not available, besides those that are Impaired alone.
	gone int32
}

// take reports whether an instance may go. One that is Impaired alone spends of the budget already, but its pods still
// serve, so that it waits for those that do not.
func (w *walk) take(m *member) bool {
	switch {
	case m.Impaired && m.available:
		if w.gone >= w.Max {
			return false
		}
	case !w.Take(m.available):
		return false
	}
	if m.available {
		w.gone++
	}
	return true
}

// update walks along the candidates as far as the budget goes.
func (p *planner) update(candidates []*member, b walk) {
	hooked := 0
	for i, m := range candidates {
		if !b.take(m) {
			why := "to be updated " + spent(max(b.Unavailable, b.UnderWay), b.Max)
			p.noteWaiting(NoteUpdateLimited, len(candidates)-i, why)
			break
		}
		p.plan.Update = append(p.plan.Update, *m.Instance)
		if m.preparing && m.hooked(p.in.Hooks.InPlaceUpdate) {
			hooked++
		}
	}
	p.noteWaiting(NoteHooked, hooked, "for their inPlaceUpdate hook to let them go")
}

// bringForward brings those first for which something is true, and keeps the order else.
func bringForward(all []*member, first func(*member) bool) {
	slices.SortStableFunc(all, func(a, b *member) int { return cmp.Compare(number(first(b)), number(first(a))) })
}

// Budget is a walk over candidates of a disruption, in the order in which they are to go, that lets no more instances
// be unavailable than may be. Each Take spends of it:
//
//	b := scale.Budget{Max: 2, Unavailable: unavailable}
//	for _, pod := range candidates {
//		if !b.Take(isAvailable(pod)) {
//			break // or continue, where one that is unavailable may go before its turn
//		}
//		disrupt(pod)
//	}
type Budget struct {
	// Max is how many instances may be unavailable at once. With zero or less nothing goes that is available.
	Max int32
	// Unavailable is how many are, the candidates among them included.
	Unavailable int32
	// Strict limits how many are under way, too: then an unavailable one needs a place as well. Without it a
	// workload that is all broken is replaced at once.
	Strict bool
	// UnderWay is how many are on their way already: disrupted before, and not available yet. Only Strict looks at it.
	UnderWay int32
}

// Take reports whether one more candidate may go, and counts it if it may. One that is unavailable already makes
// nothing worse, so it costs nothing.
func (b *Budget) Take(available bool) bool {
	if b.Strict && b.UnderWay >= b.Max {
		return false
	}
	if available {
		if b.Unavailable >= b.Max {
			return false
		}
		b.Unavailable++
	}
	b.UnderWay = saturatingAdd(b.UnderWay, 1)
	return true
}

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
