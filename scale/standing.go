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

// pointersTo returns the standings to be sorted, which may be more than once.
func pointersTo(all []standing) []*standing {
	pointers := make([]*standing, len(all))
	for i := range all {
		pointers[i] = &all[i]
	}
	return pointers
}

// sortStandings orders by all keys, and then by name.
func sortStandings(all []*standing) {
	slices.SortFunc(all, func(x, y *standing) int {
		if key := x.decides(y); key < keys {
			return cmp.Compare(x.keys[key], y.keys[key])
		}
		return cmp.Compare(x.Name, y.Name)
	})
}
