package scale

import (
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// victims are the candidates in the order in which they are to be deleted. others stay; they count where instances
// share a place.
func (p *planner) victims(candidates, others []*member) []*standing {
	all := make([]standing, len(candidates)+len(others))
	nodes := numbering{}
	for i, m := range slices.Concat(candidates, others) {
		s := newStanding(m)
		s.keys[keyCost] = m.deletionCost()
		if i >= len(candidates) {
			s.keys[keyStays] = 1
		}
		s.place = nowhere
		if node := m.node(); node != "" {
			s.place = nodes.of(node)
		}
		all[i] = s
	}
	sorted := pointersTo(all)
	p.rank(sorted, nodes.names)
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
func (p *planner) rank(sorted []*standing, nodes []string) {
	own := make([]int, len(nodes))
	for i := range own {
		own[i] = i
	}
	sortStandings(sorted)
	countDown(sorted, own, func(s *standing, left int64) { s.keys[keyCrowd] = 1 - left })
	spread := func(hostname bool) {
		for _, key := range p.in.SpreadKeys {
			if (key == corev1.LabelHostname) != hostname {
				continue
			}
			domains, n := p.domains(nodes, key)
			weight := logarithm(uint64(n) + 2)
			countDown(sorted, domains, func(s *standing, left int64) { s.spread += left * weight })
		}
	}
	spread(true) // all of a domain are on one node, so that the node decides nothing
	if len(p.in.SpreadKeys) > 0 {
		sortStandings(sorted)
		spread(false)
	}
}

// nowhere is the number of no node, or no domain.
const nowhere = -1

// numbering numbers names from 0 on.
type numbering struct {
	names   []string
	numbers map[string]int
}

func (n *numbering) of(name string) int {
	number, known := n.numbers[name]
	if !known {
		if n.numbers == nil {
			n.numbers = map[string]int{}
		}
		number = len(n.names)
		n.numbers[name] = number
		n.names = append(n.names, name)
	}
	return number
}

// domains are the numbers of the domains that nodes are in, and how many there are.
func (p *planner) domains(nodes []string, key string) (of []int, n int) {
	of = make([]int, len(nodes))
	domains := numbering{}
	for i, node := range nodes {
		of[i] = nowhere
		if domain, ok := p.in.NodeLabels[node][key]; ok {
			of[i] = domains.of(domain)
		}
	}
	return of, len(domains.names)
}

// countDown computes, for each instance in a place, how many of that place are left from it on, itself included.
func countDown(sorted []*standing, places []int, set func(s *standing, left int64)) {
	left := make([]int64, len(places))
	for _, s := range sorted {
		if s.place != nowhere && places[s.place] != nowhere {
			left[places[s.place]]++
		}
	}
	for _, s := range sorted {
		if s.place != nowhere && places[s.place] != nowhere {
			place := places[s.place]
			set(s, left[place])
			left[place]--
		}
	}
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

// victimText explains why an instance goes before one that stays, by the key that decided.
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
	return "too many, and only its name ranks it"
}
