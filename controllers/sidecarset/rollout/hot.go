package rollout

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// parts returns the indexes in the pod of the working container of a hot one, and of the other.
func (m *member) parts(s container) (working, other int) {
	first, second := indexOf(m.pod, s.first), indexOf(m.pod, s.second)
	if m.working[s.name] == s.first {
		return first, second
	}
	return second, first
}

// isSwitching reports whether the container that does not work has another image than the empty one.
func (m *member) isSwitching(s container) bool {
	if !s.hot || s.empty == "" {
		return false
	}
	_, other := m.parts(s)
	return m.pod.Spec.Containers[other].Image != s.empty
}

// reset ends the hot upgrades whose new containers work, also while updates are paused: two working containers are no
// state to keep.
func (p *planner) reset() {
	for _, m := range p.members {
		if !slices.ContainsFunc(p.sidecars, m.isSwitching) {
			continue
		}
		if !p.canReset(m) {
			p.note(NoteHotUpgrade, m, "both containers of a hot upgrade are kept until the new one is ready")
			continue
		}
		d := p.draft(m)
		for _, s := range p.sidecars {
			if m.isSwitching(s) {
				working, other := m.parts(s)
				d.image(other, s.empty)
				d.annotate(kruise.SidecarSetVersionKeyPrefix+m.nameAt(other), "0")
				d.annotate(kruise.SidecarSetVersionAltKeyPrefix+m.nameAt(working), "0")
			}
		}
		if err := d.recordState(m, false); err != nil {
			p.fail(m, err)
			continue
		}
		m.reset = true
		p.result.Resets = append(p.result.Resets, d.change(ActionReset))
	}
}

// canReset reports whether the pod needs none of the containers that do not work. It needs them where the record of the
// working container is wrong, because the other container is the only one that runs.
func (p *planner) canReset(m *member) bool {
	others := map[string]bool{}
	for _, s := range p.sidecars {
		if !s.hot {
			continue
		}
		working, other := m.parts(s)
		if m.pod.Spec.Containers[working].Image == s.empty {
			return false
		}
		others[m.nameAt(other)] = true
	}
	if !m.isConsistent(func(name string) bool { return p.names[name] && !others[name] }) {
		return false
	}
	return runs(m.pod) || !slices.ContainsFunc(m.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return !s.Ready && !others[s.Name]
	})
}

func (m *member) nameAt(i int) string { return m.pod.Spec.Containers[i].Name }

// upgrade gives one of the two containers of a hot one the image of the set, and makes it the working one.
func (d *draft) upgrade(m *member, s container) {
	working, other := m.parts(s)
	change := m.spare(s)
	keep := working + other - change
	switch {
	case m.pod.Spec.Containers[keep].Image != s.image:
		d.image(change, s.image)
		d.work(s, m.nameAt(change))
		version := d.in.Set.ResourceVersion
		d.annotate(kruise.SidecarSetVersionKeyPrefix+m.nameAt(change), version)
		d.annotate(kruise.SidecarSetVersionAltKeyPrefix+m.nameAt(change), m.version(keep))
		d.annotate(kruise.SidecarSetVersionAltKeyPrefix+m.nameAt(keep), version)
	case change == working:
		// A rollback: the kept container has the image of the set, and its replacement does not work.
		d.work(s, m.nameAt(keep))
		if s.empty != "" {
			d.image(change, s.empty)
		}
		d.annotate(kruise.SidecarSetVersionKeyPrefix+m.nameAt(change), "0")
		d.annotate(kruise.SidecarSetVersionAltKeyPrefix+m.nameAt(change), m.version(keep))
		d.annotate(kruise.SidecarSetVersionAltKeyPrefix+m.nameAt(keep), "0")
	}
}

// spare returns the index of the container that the pod can lose: the empty one, the one that is not good, or the one
// that does not work.
func (m *member) spare(s container) int {
	_, other := m.parts(s)
	first, second := indexOf(m.pod, s.first), indexOf(m.pod, s.second)
	switch good := m.isGood(s.first); {
	case m.pod.Spec.Containers[first].Image == s.empty:
		return first
	case m.pod.Spec.Containers[second].Image == s.empty:
		return second
	case good == m.isGood(s.second):
		return other
	case good:
		return second
	default:
		return first
	}
}

// version returns the version of a container that the pod records.
func (m *member) version(i int) string {
	if v := m.pod.Annotations[kruise.SidecarSetVersionKeyPrefix+m.nameAt(i)]; v != "" {
		return v
	}
	return "0"
}
