package lean

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// sameContainers reports whether lean containers are equal. Of containers that are not lean it sees no difference in
// what Pod drops.
func sameContainers(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameContainer(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameContainer(a, b *corev1.Container) bool {
	return a.Name == b.Name && a.Image == b.Image && a.ImagePullPolicy == b.ImagePullPolicy &&
		ptr.Equal(a.RestartPolicy, b.RestartPolicy) &&
		slices.Equal(a.Ports, b.Ports) && slices.Equal(a.ResizePolicy, b.ResizePolicy) &&
		slices.Equal(a.Resources.Claims, b.Resources.Claims) &&
		sameEnvironment(a.Env, b.Env) &&
		maps.Equal(a.Resources.Requests, b.Resources.Requests) && maps.Equal(a.Resources.Limits, b.Resources.Limits) &&
		(len(a.RestartPolicyRules)+len(b.RestartPolicyRules) == 0 ||
			reflect.DeepEqual(a.RestartPolicyRules, b.RestartPolicyRules)) &&
		(a.Lifecycle == nil && b.Lifecycle == nil || reflect.DeepEqual(a.Lifecycle, b.Lifecycle))
}

func sameEnvironment(a, b []corev1.EnvVar) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Name != y.Name || x.Value != y.Value ||
			(x.ValueFrom != nil || y.ValueFrom != nil) && !reflect.DeepEqual(x.ValueFrom, y.ValueFrom) {
			return false
		}
	}
	return true
}

func sameToleration(a, b corev1.Toleration) bool {
	if !ptr.Equal(a.TolerationSeconds, b.TolerationSeconds) {
		return false
	}
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return a == b
}

// shareResources has the statuses of containers share the amounts of their containers, which a running pod repeats.
func shareResources(pod *corev1.Pod) {
	share(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	share(pod.Status.ContainerStatuses, pod.Spec.Containers)
}

func share(statuses []corev1.ContainerStatus, containers []corev1.Container) {
	for i := range statuses {
		has := statuses[i].Resources
		if has == nil {
			continue
		}
		for j := range containers {
			if c := &containers[j]; c.Name == statuses[i].Name {
				has.Requests = common(has.Requests, c.Resources.Requests)
				has.Limits = common(has.Limits, c.Resources.Limits)
			}
		}
	}
}

// common returns the other amounts where they are equal.
func common(mine, others corev1.ResourceList) corev1.ResourceList {
	if len(mine) > 0 && maps.Equal(mine, others) {
		return others
	}
	return mine
}
