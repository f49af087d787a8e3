package rollout

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

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
