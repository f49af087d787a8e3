package containerrestart

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// Stale reports whether the daemon must call Describe again after a change of a pod. Was is the pod before the change,
// nil for a pod that is new to the cache. Stale compares the two pods alone and is cheap, so that it can filter events.
// Env is View.Env.
func Stale(was, is *corev1.Pod, env bool) bool {
	if !described(is) {
		return false
	}
	_, annotated := is.Annotations[kruise.RuntimeContainerMetaKey]
	if was == nil && !annotated {
		// A daemon that starts leaves old pods alone until something happens in them.
		return false
	}
	if was != nil && len(was.Spec.Containers) != len(is.Spec.Containers) {
		return true
	}
	metas, known := metasOf(is), 0
	for i := range is.Status.ContainerStatuses {
		status := &is.Status.ContainerStatuses[i]
		if status.ContainerID == "" {
			continue
		}
		known++
		meta := metaOf(metas, status.Name)
		if meta == nil || meta.ContainerID != status.ContainerID {
			return true
		}
		if c := ownContainer(is, status.Name); env && c != nil && envMoved(was, is, c, meta) {
			return true
		}
	}
	return !annotated || known != len(metas)
}

// envMoved says whether a container is to have another environment than it has, or than it was to have before.
func envMoved(was, is *corev1.Pod, c *corev1.Container, meta *kruise.RuntimeContainerMeta) bool {
	want, err := inplace.EnvHash(c, is.Labels, is.Annotations)
	if err != nil || want != meta.Hashes.ExtractedEnvFromMetadataHash {
		return true
	}
	if was == nil {
		return false
	}
	before, err := inplace.EnvHash(c, was.Labels, was.Annotations)
	return err != nil || before != want
}
