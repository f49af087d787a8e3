package scale

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// victims are the candidates in the order in which they are to be deleted. others stay; they count where instances
// share a place.
func (p *planner) victims(candidates, others []*member) []*standing {
	all := make([]standing, len(candidates)+len(others))
	for i, m := range slices.Concat(candidates, others) {
		s := newStanding(m)
		s.keys[keyCost] = m.deletionCost()
		if i >= len(candidates) {
			s.keys[keyStays] = 1
		}
		all[i] = s
	}
	sorted := pointersTo(all)
	p.rank(sorted)
	sorted = sorted[:len(candidates)] // the others come after them, by the first key
	for _, s := range sorted {
		if len(p.in.SpreadKeys) > 0 {
			s.keys[keyCrowd] = -s.spread
		}
		if s.available {
			s.keys[keyAvailable] = 1
		}
	}
	sortStandings(sorted)
	return sorted
}

// rank counts what instances have in common with others. Whether one is available does not matter here, only later,
// when it is compared with those elsewhere.
//
// With spread keys, an instance counts, for each key, those of its domain that are as good as it or better, so that
// larger domains shrink first; the more domains a key has, the more it weighs.
func (p *planner) rank(sorted []*standing) {
	sortStandings(sorted)
	countDown(sorted, func(s *standing) (string, bool) { return s.node(), s.node() != "" },
		func(s *standing, left, _ int) { s.keys[keyCrowd] = 1 - int64(left) })
	spread := func(hostname bool) {
		for _, key := range p.in.SpreadKeys {
			if (key == corev1.LabelHostname) != hostname {
				continue
			}
			domain := func(s *standing) (string, bool) {
				value, ok := p.in.NodeLabels[s.node()][key]
				return value, ok
			}
			countDown(sorted, domain, func(s *standing, left, domains int) {
				s.spread += int64(left) * logarithm(domains+2)
			})
		}
	}
	spread(true) // all of a domain are on one node, so that the node decides nothing
	if len(p.in.SpreadKeys) > 0 {
		sortStandings(sorted)
		spread(false)
	}
}

// countDown calls set for each instance in a place, with how many of that place are left from it on, itself included,
// and how many places there are.
func countDown(sorted []*standing, placeOf func(*standing) (string, bool), set func(s *standing, left, places int)) {
	left := map[string]int{}
	for _, s := range sorted {
		if place, ok := placeOf(s); ok {
			left[place]++
		}
	}
	for _, s := range sorted {
		if place, ok := placeOf(s); ok {
			set(s, left[place], len(left))
			left[place]--
		}
	}
}

// logarithm returns the logarithm of n in units of 2^-16. A sum of weights decides what is deleted, and must not depend
// on the order in which they are added, as sums of fractions do.
func logarithm(n int) int64 { return int64(math.Log2(float64(n)) * (1 << 16)) }

// victimText explains why an instance goes before one that stays, by the key that decided.
func victimText(key int) string {
	return [...]string{
		keyStays:     "too many, and it is not to stay",
		keyAssigned:  "too many, and it is on no node",
		keyPhase:     "too many, and it does not run",
		keyAvailable: "too many, and it is not available",
		keyReady:     "too many, and it is not ready",
		keyCost:      "too many, and its deletion cost is lower",
		keyCrowd:     "too many, and more share its node or domain",
		keyReadyTime: "too many, and it became ready later",
		keyRestarts:  "too many, and it restarted more often",
		keyCreated:   "too many, and it is newer",
		keys:         "too many, and only its name ranks it",
	}[key]
}
