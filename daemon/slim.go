package daemon

import (
	corev1 "k8s.io/api/core/v1"
)

// slimPod drops from a pod what no part reads: most of its spec. What is left tells who the pod is, what its containers are
// called, where their environment comes from, which hooks they have, and how they are. So a cached pod is nothing to update
// from: parts patch.
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
