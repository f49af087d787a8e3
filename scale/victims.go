package scale

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"
)

// victims are the candidates in the order in which they are to be deleted. others stay; they count where instances
// share a place.
func (p *planner) victims(candidates, others []*member) []*standing {
	all := make([]standing, 0, len(candidates)+len(others))
	for _, m := range candidates {
		s := newStanding(m)
		s.keys[keyCost] = m.deletionCost()
		all = append(all, s)
	}
	for _, m := range others {
		s := newStanding(m)
		s.keys[keyCost] = m.deletionCost()
		s.keys[keyStays] = 1
		all = append(all, s)
	}
	refs := pointers(all)
	rankByNode(refs)
	for _, key := range p.in.SpreadKeys {
		p.rankByTopology(refs, key)
	}
	out := refs[:len(candidates)]
	for _, s := range out {
		s.keys[keyCrowd] = -s.sameNode
		if len(p.in.SpreadKeys) > 0 {
			s.keys[keyCrowd] = -s.spread
		}
		if s.available {
			s.keys[keyAvailable] = 1
		}
	}
	sortStandings(out)
	return out
}

// rankByNode counts, for each instance, those on its node that are better than it. Whether one is available does
// not matter here, only later, between nodes.
func rankByNode(all []*standing) {
	for _, group := range grouped(all, func(s *standing) (string, bool) { return s.node, s.node != "" }) {
		sortStandings(group)
		for i, s := range group {
			s.sameNode = int64(len(group) - 1 - i)
		}
	}
}

// rankByTopology adds, for each instance, how many of its domain are as good as it or better, so that larger domains
// shrink first. The more domains a key has, the more it weighs.
func (p *planner) rankByTopology(all []*standing, key string) {
	for _, s := range all {
		s.keys[keyCrowd] = 0
		if key != corev1.LabelHostname { // a domain is a node: all of it is on the same
			s.keys[keyCrowd] = -s.sameNode
		}
	}
	groups := grouped(all, func(s *standing) (string, bool) {
		if s.node == "" {
			return "", false
		}
		domain, ok := p.in.NodeLabels[s.node][key]
		return domain, ok
	})
	weight := logarithm(uint64(len(groups)) + 2)
	for _, group := range groups {
		sortStandings(group)
		for i, s := range group {
			s.spread += int64(len(group)-i) * weight
		}
	}
	for _, s := range all {
		s.keys[keyCrowd] = 0
	}
}

// grouped are the items by a value; those without one are left out.
func grouped(all []*standing, value func(*standing) (string, bool)) [][]*standing {
	index := map[string]int{}
	var groups [][]*standing
	for _, s := range all {
		v, ok := value(s)
		if !ok {
			continue
		}
		i, known := index[v]
		if !known {
			i = len(groups)
			index[v] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// logarithm of n, at least 1, to the base 2, in units of 2^-16. Weights are only compared with each other, so any
// base will do; and whole numbers, because fractions are rounded differently on different machines and by the order
// in which they are added, and the choice of what to delete must depend on neither.
func logarithm(n uint64) int64 {
	const fraction = 16
	whole := bits.Len64(n) - 1
	result := int64(whole)
	// One bit of the result a squaring: it doubles the logarithm of a number from 1 to 2, here in units of 2^-31.
	x := n << (63 - whole) >> 32
	for range fraction {
		x = x * x >> 31
		result <<= 1
		if x >= 1<<32 {
			x >>= 1
			result++
		}
	}
	return result
}

// victimTexts say why an instance goes before one that stays, by the key that decided.
func victimText(key int) string {
	switch key {
	case keyAssigned:
		return "too many, and it is on no node"
	case keyPhase:
		return "too many, and it does not run"
	case keyAvailable:
		return "too many, and it is not available"
	case keyReady:
		return "too many, and it is not ready"
	case keyCost:
		return "too many, and its deletion cost is lower"
	case keyCrowd:
		return "too many, and more share its node or domain"
	case keyReadyTime:
		return "too many, and it became ready later"
	case keyRestarts:
		return "too many, and it restarted more often"
	case keyCreated:
		return "too many, and it is newer"
	}
	return "too many, and nothing but its name tells it apart"
}
