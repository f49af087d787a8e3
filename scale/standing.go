package scale

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/lifecycle"
)

// The keys by which one instance goes before another, the first that differs decides. Smaller goes first.
const (
	keyStays    = iota // 1 for those that are not to go at all, and only take part in a rank
	keyAssigned        // to a node
	keyPhase
	keyAvailable
	keyReady
	keyCost // of its deletion
	keyCrowd
	keyReadyTime
	keyRestarts
	keyCreated
	keys
)

// standing is what an instance is compared by, read from its pods once. A key that is 0 for all decides nothing.
type standing struct {
	keys [keys]int64
	*member
	// spread is a rank, the larger the sooner it goes.
	spread int64
}

// newStanding knows what is asked both before updates and before deletions.
func newStanding(m *member) standing {
	s := standing{member: m}
	for n, pod := range m.Pods {
		k := keysOf(pod)
		if n == 0 {
			s.keys = k
			continue
		}
		for i := range k {
			s.keys[i] = min(s.keys[i], k[i]) // the weakest pod counts
		}
	}
	if len(m.Pods) < max(m.Size, 1) {
		s.keys[keyReady] = 0
	}
	if s.keys[keyReady] == 0 {
		s.keys[keyReadyTime] = 0 // since when counts only among those that are ready
	}
	return s
}

func keysOf(pod *corev1.Pod) [keys]int64 {
	k := [keys]int64{}
	if pod.Spec.NodeName != "" {
		k[keyAssigned] = 1
	}
	switch pod.Status.Phase {
	case corev1.PodUnknown:
		k[keyPhase] = 1
	case corev1.PodRunning:
		k[keyPhase] = 2
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		k[keyReady] = 1
		k[keyReadyTime] = latestFirst(c.LastTransitionTime.Unix(), c.LastTransitionTime.IsZero())
	}
	for i := range pod.Status.ContainerStatuses {
		k[keyRestarts] = min(k[keyRestarts], -int64(pod.Status.ContainerStatuses[i].RestartCount))
	}
	k[keyCreated] = latestFirst(pod.CreationTimestamp.Unix(), pod.CreationTimestamp.IsZero())
	return k
}

// Standing returns the keys by which workloads choose pods to delete, the most significant one first. The pod with the
// smaller keys goes first: one on no node, not running, not ready, ready for less time, restarted more often, or newer.
func Standing(pod *corev1.Pod) []int64 {
	k := keysOf(pod)
	return k[:]
}

// latestFirst makes a key of a time in seconds; no time comes before all.
func latestFirst(seconds int64, none bool) int64 {
	if none {
		return math.MinInt64
	}
	return -seconds
}

// deletionCost is the sum of the costs of the pods. A pod without a number, or with one that is not written as the
// number would be printed, counts as 0.
func (m *member) deletionCost() int64 {
	var sum int64 // of 32-bit numbers: no group has enough pods to overflow it
	for _, pod := range m.Pods {
		text := pod.Annotations[corev1.PodDeletionCost]
		if text == "" || text[0] == '+' || (text[0] == '0' && text != "0") {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			sum += n
		}
	}
	return sum
}

// decides gives the key by which two differ; keys where only the name differs.
func (s *standing) decides(other *standing) int {
	for i, k := range s.keys {
		if k != other.keys[i] {
			return i
		}
	}
	return keys
}

// sortStandings orders by all keys, and then by name.
func sortStandings(all []standing) {
	slices.SortFunc(all, func(x, y standing) int {
		return cmp.Or(slices.Compare(x.keys[:], y.keys[:]), cmp.Compare(x.Name, y.Name))
	})
}

// victims are the candidates in the order in which they are to be deleted. others stay; they count where instances
// share a place.
func (p *planner) victims(candidates, others []*member) []standing {
	sorted := make([]standing, len(candidates)+len(others))
	for i, m := range slices.Concat(candidates, others) {
		sorted[i] = newStanding(m)
		sorted[i].keys[keyCost] = m.deletionCost()
		if i >= len(candidates) {
			sorted[i].keys[keyStays] = 1
		}
	}
	p.rank(sorted)
	sorted = sorted[:len(candidates)] // the others come after them, by the first key
	for i := range sorted {
		s := &sorted[i]
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
func (p *planner) rank(sorted []standing) {
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
func countDown(sorted []standing, placeOf func(*standing) (string, bool), set func(s *standing, left, places int)) {
	left := map[string]int{}
	for i := range sorted {
		if place, ok := placeOf(&sorted[i]); ok {
			left[place]++
		}
	}
	for i := range sorted {
		if place, ok := placeOf(&sorted[i]); ok {
			set(&sorted[i], left[place], len(left))
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
