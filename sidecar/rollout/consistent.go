package rollout

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
)

// isConsistent says whether, as far as the kubelet tells, the containers of some names run the images that the pod's spec
// has. One with a digest has to run that. Of others only those can be told that the last update changed: their restart
// is what is waited for.
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

// hasStarted says whether a container whose image was changed runs the new one. The reference records no more than the old
// image; where the container is recorded as well, its restart tells even if two names are of one image.
func hasStarted(c *corev1.Container, now *corev1.ContainerStatus, last pub.InPlaceUpdateContainerStatus) bool {
	switch {
	case now.ImageID == "" && (last.ImageID != "" || now.State.Running == nil):
		return false // between the old container and the new
	case now.ImageID != last.ImageID:
		return true
	case last.ContainerID != "" && (now.ContainerID != "" && now.ContainerID != last.ContainerID || now.RestartCount > last.RestartCount):
		return true
	}
	return inplace.SameImage(now.Image, c.Image)
}

// isGood says whether a container is ready and runs its image.
func (m *member) isGood(name string) bool {
	now := statusOf(m.pod, name)
	return now != nil && now.Ready && m.isConsistent(func(n string) bool { return n == name })
}

// restarting is a container that is ready and does not run its image yet, as just after a write; empty if there is none. A record
// that cannot be read tells of none: nothing would ever replace it, if not the next update.
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
