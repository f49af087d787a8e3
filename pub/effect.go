package pub

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/inplace"
)

// Effect returns the operation that an update of a pod is by its effect: UPDATE where containers restart or the pod is
// made unavailable, RESIZE where running containers get other resources, and Harmless for everything else. The
// subresource is empty for an update of the pod itself.
//
// Where a field of the spec is not among those that are known to be harmless, its change is an UPDATE.
func Effect(before, after *corev1.Pod, subresource string, p Policy) Operation {
	switch {
	case before == nil || after == nil || subresource != "" && subresource != "resize":
		return Harmless
	case MarkedUnavailable(after) && !MarkedUnavailable(before), p.Installed.EnvDaemon && refed(before, after):
		return Update
	}
	was, is := essential(&before.Spec), essential(&after.Spec)
	switch {
	case apiequality.Semantic.DeepEqual(was, is):
		return Harmless
	case isResize(before, after, was, is):
		return Resize
	}
	return Update
}

// essential is a copy of a spec without the fields whose change leaves a running pod as available as it was: where the
// pod may be scheduled, how long its containers may take to stop, debug containers, and images of init containers that
// have completed. activeDeadlineSeconds is not among them: a deadline ends the pod.
func essential(spec *corev1.PodSpec) *corev1.PodSpec {
	s := *spec
	s.Tolerations, s.SchedulingGates, s.NodeSelector, s.Affinity = nil, nil, nil, nil
	s.TerminationGracePeriodSeconds, s.EphemeralContainers = nil, nil
	s.InitContainers = slices.Clone(s.InitContainers)
	for i := range s.InitContainers {
		if c := &s.InitContainers[i]; !isSidecar(c) {
			c.Image = ""
		}
	}
	return &s
}

// isSidecar reports whether an init container runs as long as the pod.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// refed reports whether another value of a label or an annotation feeds the environment of a running container.
func refed(before, after *corev1.Pod) bool {
	for i := range before.Spec.Containers {
		c := &before.Spec.Containers[i]
		if !inplace.HasFedEnv(c) {
			continue
		}
		was, err := inplace.EnvHash(c, before.Labels, before.Annotations)
		is, failed := inplace.EnvHash(c, after.Labels, after.Annotations)
		if err != nil || failed != nil || was != is {
			return true
		}
	}
	return false
}

// isResize reports whether two specs differ only in cpu and memory of regular containers, and no container restarts for
// it.
func isResize(before, after *corev1.Pod, was, is *corev1.PodSpec) bool {
	if isStatic(before) || isStatic(after) || len(was.Containers) != len(is.Containers) ||
		inplace.QOSClass(&before.Spec) != inplace.QOSClass(&after.Spec) {
		return false
	}
	for i := range was.Containers {
		if was.Containers[i].Name != is.Containers[i].Name || !isHotResize(&was.Containers[i], &is.Containers[i]) {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(withoutResources(was), withoutResources(is))
}

func withoutResources(spec *corev1.PodSpec) *corev1.PodSpec {
	s := *spec
	s.Containers = slices.Clone(s.Containers)
	for i := range s.Containers {
		s.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	return &s
}

// configSource is the annotation of a pod with the source that a kubelet has the pod from: api, or a file for a static
// pod.
const configSource = "kubernetes.io/config.source"

func isStatic(pod *corev1.Pod) bool {
	source, ok := pod.Annotations[configSource]
	return ok && source != "api"
}

// isHotResize reports whether only amounts change that the resize policy of the container lets change without a
// restart.
func isHotResize(before, after *corev1.Container) bool {
	was, is := &before.Resources, &after.Resources
	if !apiequality.Semantic.DeepEqual(was.Claims, is.Claims) {
		return false
	}
	for _, pair := range [][2]corev1.ResourceList{{was.Requests, is.Requests}, {was.Limits, is.Limits}} {
		for name := range union(pair[0], pair[1]) {
			if !same(pair[0], pair[1], name) && !isHot(before, name) {
				return false
			}
		}
	}
	return true
}

func union(a, b corev1.ResourceList) map[corev1.ResourceName]bool {
	names := make(map[corev1.ResourceName]bool, len(a)+len(b))
	for _, list := range []corev1.ResourceList{a, b} {
		for name := range list {
			names[name] = true
		}
	}
	return names
}

func same(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	var was, is resource.Quantity
	was, had := a[name]
	is, has := b[name]
	return had == has && was.Cmp(is) == 0
}

func isHot(c *corev1.Container, name corev1.ResourceName) bool {
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		return false
	}
	for _, policy := range c.ResizePolicy {
		if policy.ResourceName == name {
			return policy.RestartPolicy == "" || policy.RestartPolicy == corev1.NotRequired
		}
	}
	return true
}
