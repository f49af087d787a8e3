package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restarts returns the names of the containers of a pod that restart when the change is made in the pod, sorted:
// containers that get another image, containers whose environment changes, and containers whose resize policy restarts
// them. A change of a variable restarts a container only where a node daemon runs, see Policy.Env.
func (c *Change) Restarts(pod *corev1.Pod) []string {
	names := make([]string, 0, len(c.Images)+len(c.Env)+len(c.Resources))
	for name, image := range c.Images {
		if has := find(pod.Spec.Containers, name); has != nil && has.Image != image {
			names = append(names, name)
		}
	}
	for _, name := range c.Env {
		if find(pod.Spec.Containers, name) != nil {
			names = append(names, name)
		}
	}
	for name, resources := range c.Resources {
		if has := find(pod.Spec.Containers, name); has != nil && restartedBy(has, resources) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// restartsOf returns the containers that the next batch of a change restarts.
func (l look) restartsOf(c *Change) []string {
	if len(c.Images) == 0 && len(c.Env) == 0 && len(c.Resources) == 0 {
		return nil
	}
	c = c.due(l.pod)
	batch, _ := split(l.pod, c, l.policy.Keys)
	return l.inBatch(c, batch).Restarts(l.pod)
}

// inBatch returns what one write of a pod itself changes in the containers of a batch. Resources are written before.
func (l look) inBatch(c *Change, batch []string) *Change {
	part := &Change{Images: only(c.Images, batch)}
	for _, name := range c.Env {
		refs := c.RefMetadata[name]
		now := slices.Contains(batch, name) && len(refs.Labels)+len(refs.Annotations) > 0
		if has := find(l.pod.Spec.Containers, name); has != nil && (now || c.Metadata.feeds(has)) {
			part.Env = append(part.Env, name)
		}
	}
	return part
}

// feeds reports whether a change of metadata changes what a container's environment is fed from.
func (m *Metadata) feeds(c *corev1.Container) bool {
	return slices.ContainsFunc(fedBy(c), func(f feed) bool {
		changed := m.Labels
		if !f.label {
			changed = m.Annotations
		}
		_, is := changed[f.key]
		return is
	})
}

func restartedBy(c *corev1.Container, change corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		_, limit := change.Limits[p.ResourceName]
		_, request := change.Requests[p.ResourceName]
		if p.RestartPolicy == corev1.RestartContainer && (limit || request) {
			return true
		}
	}
	return false
}
