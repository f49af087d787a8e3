package scale

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// member is an instance with what follows from its pods.
type member struct {
	*Instance

	// ready is available but for the time, wait is how much of that is left.
	ready, available bool
	wait             time.Duration
	// preparingDelete and preparing are held by a hook, before deletion and before an update.
	preparingDelete, preparing bool
	// first is the pod that stands for all; an empty one where there is none.
	first *corev1.Pod
}

// newMember looks at an instance. none stands for the pods of one that has none.
func newMember(instance *Instance, in *Input, none *corev1.Pod) member {
	m := member{Instance: instance, ready: true, first: none}
	if slices.Contains(instance.Pods, nil) {
		m.Instance = ptr.To(*instance)
		m.Pods = slices.DeleteFunc(slices.Clone(m.Pods), func(pod *corev1.Pod) bool { return pod == nil })
	}
	if len(m.Pods) > 0 {
		m.first = m.Pods[0]
	}
	for _, pod := range m.Pods {
		state := in.Keys.StateOf(pod)
		switch state {
		case kruise.LifecycleStatePreparingDelete:
			m.preparingDelete = true
		case kruise.LifecycleStatePreparingUpdate:
			m.preparing = true
		}
		healthy, since := health(pod, state, in.Keys)
		if healthy {
			m.wait = max(m.wait, remaining(since, in.MinReadySeconds, in.Now))
		}
		m.ready = m.ready && healthy
	}
	m.ready = m.ready && len(m.Pods) >= max(instance.Size, 1) && !instance.Terminating
	if !m.ready {
		m.wait = 0
	}
	m.available = m.ready && m.wait == 0
	return m
}

// isFinished reports whether nothing but the deletion of the instance is left.
func (m *member) isFinished() bool { return m.Terminating && m.Finished }

// labels are those that a strategy looks at.
func (m *member) labels() map[string]string { return m.first.Labels }

// node is where it runs; empty for nowhere.
func (m *member) node() string { return m.first.Spec.NodeName }

// hooked reports whether a hook holds a pod.
func (m *member) hooked(hook *kruise.LifecycleHook) bool {
	return hook != nil && slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool { return lifecycle.HasAny(pod, hook) })
}

// inGrace reports whether a pod waits for the end of the grace period of an in-place update, so that its containers
// have not changed yet.
func (m *member) inGrace(keys *kruise.Keys) bool {
	return slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool {
		_, text, _ := keys.Lookup(pod.Annotations, (*kruise.Keys).InPlaceGraceKey)
		return text != "" || pod.Annotations[kruise.InPlaceUpdateGraceKeyOld] != ""
	})
}

// Available reports whether a pod counts as available: it runs, has been Ready for minReadySeconds, no in-place update
// keeps it from being ready, and its lifecycle state is Normal or none. Where only time is missing, wait is how long.
// A Ready condition without a transition time waits for the full time.
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) (ok bool, wait time.Duration) {
	return (&Input{MinReadySeconds: minReadySeconds, Now: now}).Available(pod)
}

// Available reports whether a pod counts as available, as the function Available does, under the keys of the input.
func (in *Input) Available(pod *corev1.Pod) (ok bool, wait time.Duration) {
	if pod == nil {
		return false, 0
	}
	healthy, since := health(pod, in.Keys.StateOf(pod), in.Keys)
	if !healthy {
		return false, 0
	}
	wait = remaining(since, in.MinReadySeconds, in.Now)
	return wait == 0, wait
}

// health is availability of a pod in a state of its life, but for the time, and since when the pod is ready.
func health(pod *corev1.Pod, state kruise.LifecycleState, keys *kruise.Keys) (ok bool, since time.Time) {
	if pod.Status.Phase != corev1.PodRunning || state != "" && state != kruise.LifecycleStateNormal {
		return false, since
	}
	if c := lifecycle.ConditionOf(pod, keys.InPlaceReadyOf(pod)); c != nil && c.Status != corev1.ConditionTrue {
		return false, since
	}
	ready := lifecycle.ConditionOf(pod, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return false, since
	}
	return true, ready.LastTransitionTime.Time
}

// remaining is how much of the time is left for a pod that is ready since then.
func remaining(since time.Time, minReadySeconds int32, now time.Time) time.Duration {
	if minReadySeconds <= 0 {
		return 0
	}
	least := time.Duration(minReadySeconds) * time.Second
	if since.IsZero() {
		return least
	}
	return max(since.Add(least).Sub(now), 0)
}

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
	k := [keys]int64{keyAssigned: number(pod.Spec.NodeName != "")}
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
		sorted[i].keys[keyStays] = number(i >= len(candidates))
	}
	p.rank(sorted)
	sorted = sorted[:len(candidates)] // the others come after them, by the first key
	for i := range sorted {
		s := &sorted[i]
		if len(p.in.SpreadKeys) > 0 {
			s.keys[keyCrowd] = -s.spread
		}
		s.keys[keyAvailable] = number(s.available)
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
