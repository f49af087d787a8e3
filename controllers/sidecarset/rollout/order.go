package rollout

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
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

// isConsistent reports whether the containers of some names run the images of the pod's spec, as far as the kubelet
// reports. An image with a digest must run that digest. Of other images only those of the last update are known: their
// containers must have restarted.
func (m *member) isConsistent(in func(name string) bool) bool {
	if len(m.pod.Spec.Containers) != len(m.pod.Status.ContainerStatuses) {
		return false
	}
	for i := range m.pod.Spec.Containers {
		if c := &m.pod.Spec.Containers[i]; in(c.Name) && !m.runsImage(c) {
			return false
		}
	}
	return true
}

func (m *member) runsImage(c *corev1.Container) bool {
	now := statusOf(m.pod, c.Name)
	if strings.Contains(c.Image, "@") {
		if now == nil {
			return false
		}
		id := now.ImageID
		if _, after, ok := strings.Cut(id, "://"); ok {
			id = after
		}
		return inplace.SameImage(c.Image, id)
	}
	if m.badState {
		return false
	}
	if m.last == nil {
		return true
	}
	last, changed := m.last[c.Name]
	return !changed || now != nil && hasStarted(c, now, last)
}

// hasStarted reports whether a container whose image was changed runs the new one. The reference records only the old
// image; if the container is recorded as well, a restart counts even if both names are of one image.
func hasStarted(c *corev1.Container, now *corev1.ContainerStatus, last kruise.InPlaceUpdateContainerStatus) bool {
	switch {
	case now.ImageID == "" && (last.ImageID != "" || now.State.Running == nil):
		return false // between the old container and the new
	case now.ImageID != last.ImageID:
		return true
	case last.ContainerID != "" &&
		(now.ContainerID != "" && now.ContainerID != last.ContainerID || now.RestartCount > last.RestartCount):
		return true
	}
	return inplace.SameImage(now.Image, c.Image)
}

// isGood reports whether a container is ready and runs its image.
func (m *member) isGood(name string) bool {
	now := statusOf(m.pod, name)
	return now != nil && now.Ready && m.isConsistent(func(n string) bool { return n == name })
}

// restarting returns a container that is ready and does not run its image yet, as just after a write; empty if there is
// none. A record that cannot be read counts as none: only the next update replaces it.
func (p *planner) restarting(m *member) string {
	if m.badState {
		return ""
	}
	for i := range m.pod.Status.ContainerStatuses {
		s := &m.pod.Status.ContainerStatuses[i]
		if s.Ready && p.names[s.Name] && !m.isConsistent(func(n string) bool { return n == s.Name }) {
			return s.Name
		}
	}
	return ""
}
