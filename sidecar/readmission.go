package sidecar

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// former returns the container that an earlier admission of the same pod put in the place of a container of the set;
// nil if there was none, or if the pod records another version of the set. It has what replaced containers lent, which
// are gone: an API server sends a pod once for each webhook entry that selects the pod, and only the first admission
// has them. Its own additions are left out.
func (in *injector) former(set *Set, p *part) *corev1.Container {
	if record, ok := in.recorded[set.Name()]; !ok || record.Hash != set.hash {
		return nil
	}
	for _, list := range [][]corev1.Container{in.pod.Spec.InitContainers, in.pod.Spec.Containers} {
		i := slices.IndexFunc(list, func(c corev1.Container) bool {
			return slices.Contains(p.names, c.Name) && IsInjected(&c)
		})
		if i < 0 {
			continue
		}
		c := list[i].DeepCopy()
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { // each admission adds them
			return e.Name == kruise.SidecarInjectedEnvName ||
				len(p.names) > 1 && (e.Name == kruise.SidecarSetVersionEnvName || e.Name == kruise.SidecarSetVersionAltEnvName)
		})
		return c
	}
	return nil
}
