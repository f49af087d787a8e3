package rollout

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// order sorts by standing, then by the priorities of the strategy, and scatters the pods.
func (p *planner) order(waiting []*member) {
	byStanding(waiting)
	u := &p.in.Set.Spec.UpdateStrategy
	if err := scale.Prioritise(waiting, (*member).labels, u.PriorityStrategy); err != nil {
		p.note(NotePriorityIgnored, nil, "%v", err)
	}
	copy(waiting, scale.Scatter(waiting, p.members, (*member).labels, p.terms(u.ScatterStrategy)))
}

// byStanding sorts pods in the order in which ReplicaSets delete them, then by name.
func byStanding(all []*member) {
	standings := make(map[*member][]int64, len(all))
	for _, m := range all {
		keys := scale.Standing(m.pod) // the age is the last one
		standings[m] = slices.Insert(keys, len(keys)-1, -nativeRestarts(m.pod))
	}
	slices.SortFunc(all, func(a, b *member) int {
		return cmp.Or(slices.Compare(standings[a], standings[b]), byName(a, b))
	})
}

// nativeRestarts returns the largest number of restarts of the native sidecars of a pod.
func nativeRestarts(pod *corev1.Pod) (most int64) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		for j := range pod.Status.InitContainerStatuses {
			if s := &pod.Status.InitContainerStatuses[j]; s.Name == c.Name {
				most = max(most, int64(s.RestartCount))
			}
		}
	}
	return most
}

// terms returns the terms of the strategy, with one term for each existing value in place of *. Package scale bounds
// them.
func (p *planner) terms(s kruise.UpdateScatterStrategy) kruise.UpdateScatterStrategy {
	var terms kruise.UpdateScatterStrategy
	seen := map[kruise.UpdateScatterTerm]bool{}
	add := func(term kruise.UpdateScatterTerm) {
		if !seen[term] {
			seen[term] = true
			terms = append(terms, term)
		}
	}
	for _, term := range s {
		if term.Value != "*" {
			add(term)
			continue
		}
		for _, m := range p.members {
			if value, ok := m.pod.Labels[term.Key]; ok {
				add(kruise.UpdateScatterTerm{Key: term.Key, Value: value})
			}
		}
	}
	return terms
}
