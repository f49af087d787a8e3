package daemon

import (
	corev1 "k8s.io/api/core/v1"
)

// slimPod drops what no part reads: managed fields, ephemeral containers and most of the spec. It keeps the names, images,
// environments, ports and hooks of containers. A cached pod is therefore no base for an update: parts patch.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone
	}
	pod.ManagedFields = nil
	spec := pod.Spec
	pod.Spec = corev1.PodSpec{
		NodeName:                      spec.NodeName,
		HostNetwork:                   spec.HostNetwork,
		RestartPolicy:                 spec.RestartPolicy,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		InitContainers:                slimContainers(spec.InitContainers),
		Containers:                    slimContainers(spec.Containers),
	}
	pod.Status.EphemeralContainerStatuses = nil
	return pod, nil
}

func slimContainers(full []corev1.Container) []corev1.Container {
	if len(full) == 0 {
		return nil
	}
	slim := make([]corev1.Container, 0, len(full))
	for i := range full {
		c := &full[i]
		slim = append(slim, corev1.Container{
			Name: c.Name, Image: c.Image, Env: c.Env, Ports: c.Ports, Lifecycle: c.Lifecycle, RestartPolicy: c.RestartPolicy,
		})
	}
	return slim
}
