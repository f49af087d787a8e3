package inplace_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// running is a pod of a template, ready and at a revision.
func running(t *corev1.PodTemplateSpec, revision string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Name, pod.UID, pod.ResourceVersion = "web-1", "uid-1", "10"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[pub.PodRevisionLabelKey] = revision
	pod.Status.Phase = corev1.PodRunning
	for _, c := range t.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "id-of-" + c.Image, ContainerID: "containerd://" + c.Name + "-0", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady, pub.InPlaceUpdateReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	return pod
}
