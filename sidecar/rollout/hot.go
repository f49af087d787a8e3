package rollout

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// parts are the places in the pod of the container that works for a hot one, and of the other.
func (m *member) parts(s container) (working, other int) {
	first, second := indexOf(m.pod, s.first), indexOf(m.pod, s.second)
	if m.working[s.name] == s.first {
		return first, second
	}
	return second, first
}

// isSwitching says whether the container that does not work has another image than the empty one.
func (m *member) isSwitching(s container) bool {
	if !s.hot || s.empty == "" {
		return false
	}
	_, other := m.parts(s)
	return m.pod.Spec.Containers[other].Image != s.empty
}

// flip ends the hot upgrades whose new containers work. It does so also while updates are paused: two containers at work
// are not a state to stay in.
func (p *planner) flip() {
	for _, m := range p.members {
		if !slices.ContainsFunc(p.sidecars, m.isSwitching) {
			continue
		}
		if !p.canFlip(m) {
			p.note(NoteHotUpgrade, m, "both containers of a hot upgrade are kept until the new one is ready")
			continue
		}
		w := p.write(m)
		for _, s := range p.sidecars {
			if m.isSwitching(s) {
				working, other := m.parts(s)
				w.reset(other, s.empty)
				w.annotate(pub.SidecarSetVersionKeyPrefix+m.nameAt(other), "0")
				w.annotate(pub.SidecarSetVersionAltKeyPrefix+m.nameAt(working), "0")
			}
		}
		if err := w.recordState(m, false); err != nil {
			p.fail(m, err)
			continue
		}
		m.flipped = true
		p.plan.Flip = append(p.plan.Flip, w.Write)
	}
}

// canFlip says whether the pod does without the containers that do not work. It does not where the record of what works is
// wrong, so that the other one is all that there is.
func (p *planner) canFlip(m *member) bool {
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

// upgrade changes one of the two containers of a hot one to the image of the set, and puts it to work.
func (w *writing) upgrade(m *member, s container) {
	working, other := m.parts(s)
	change := m.spare(s)
	keep := working + other - change
	switch {
	case m.pod.Spec.Containers[keep].Image != s.image:
		w.image(change, s.image)
		w.work(s, m.nameAt(change))
		version := w.set.ResourceVersion
		w.annotate(pub.SidecarSetVersionKeyPrefix+m.nameAt(change), version)
		w.annotate(pub.SidecarSetVersionAltKeyPrefix+m.nameAt(change), m.version(keep))
		w.annotate(pub.SidecarSetVersionAltKeyPrefix+m.nameAt(keep), version)
	case change == working:
		// The way back: what has the image of the set is there, and what was to replace it does not work.
		w.work(s, m.nameAt(keep))
		w.reset(change, s.empty)
		w.annotate(pub.SidecarSetVersionKeyPrefix+m.nameAt(change), "0")
		w.annotate(pub.SidecarSetVersionAltKeyPrefix+m.nameAt(change), m.version(keep))
		w.annotate(pub.SidecarSetVersionAltKeyPrefix+m.nameAt(keep), "0")
	}
}

// spare is the container that can be done without: the empty one, the one that does not run as it should, or the one that
// does not work.
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

// version of a container, as the pod tells it.
func (m *member) version(i int) string {
	if v := m.pod.Annotations[pub.SidecarSetVersionKeyPrefix+m.nameAt(i)]; v != "" {
		return v
	}
	return "0"
}
