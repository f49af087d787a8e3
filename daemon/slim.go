package daemon

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// slimPod drops what no part reads: managed fields, ephemeral containers and most of the spec. It keeps the names,
// images, ports and preStop hooks of containers, the variables that come from labels and annotations, and the labels
// and annotations that these name. A cached pod is therefore no base for an update: parts patch.
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
	slimMetadata(pod)
	return pod, nil
}

func slimContainers(full []corev1.Container) []corev1.Container {
	if len(full) == 0 {
		return nil
	}
	slim := make([]corev1.Container, 0, len(full))
	for i := range full {
		c := &full[i]
		kept := corev1.Container{
			Name: c.Name, Image: c.Image, Env: stored.LeanEnvironment(c.Env), Ports: c.Ports, RestartPolicy: c.RestartPolicy,
		}
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			kept.Lifecycle = &corev1.Lifecycle{PreStop: c.Lifecycle.PreStop}
		}
		slim = append(slim, kept)
	}
	return slim
}

// slimMetadata keeps the annotations that parts read, and the labels and annotations that variables name.
func slimMetadata(pod *corev1.Pod) {
	var labels map[string]string
	annotations := map[string]string{}
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.RuntimeContainerMetaKey} {
		if value, ok := pod.Annotations[key]; ok {
			annotations[key] = value
		}
	}
	for i := range pod.Spec.Containers {
		for _, e := range pod.Spec.Containers[i].Env {
			if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
				continue
			}
			path, key, _ := strings.Cut(e.ValueFrom.FieldRef.FieldPath, "['")
			key = strings.TrimSuffix(key, "']")
			if value, ok := pod.Annotations[key]; ok && path == "metadata.annotations" {
				annotations[key] = value
			}
			if value, ok := pod.Labels[key]; ok && path == "metadata.labels" {
				if labels == nil {
					labels = map[string]string{}
				}
				labels[key] = value
			}
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	pod.Labels, pod.Annotations = labels, annotations
}

// slimObject is an object without managed fields, and an untyped one packed.
func slimObject(object any) (any, error) {
	if raw, ok := object.(*unstructured.Unstructured); ok {
		stored.Pack(raw)
	}
	return cache.TransformStripManagedFields()(object)
}
