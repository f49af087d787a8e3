package inplace

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
)

// PlainHashes are the hashes that kubelets give a container's spec: of 1.31 and later, which take only name and
// image, and of older ones.
func PlainHashes(c *corev1.Container) (current, older uint64, err error) {
	current, err = hashOf(map[string]string{"image": c.Image, "name": c.Name})
	if err != nil {
		return 0, 0, err
	}
	older, err = hashOf(c)
	return current, older, err
}

// EnvHash is the hash of those values of a container's environment that come from labels and annotations.
func EnvHash(c *corev1.Container, labels, annotations map[string]string) (uint64, error) {
	return envHash(c, func(f feed) string {
		if f.label {
			return labels[f.key]
		}
		return annotations[f.key]
	})
}

// ProcessEnvHash is the same hash with the values that a process of the container has.
func ProcessEnvHash(c *corev1.Container, environment map[string]string) (uint64, error) {
	return envHash(c, func(f feed) string { return environment[f.env] })
}

// HasFedEnv reports whether values of a container's environment come from labels and annotations.
func HasFedEnv(c *corev1.Container) bool { return len(fedBy(c)) > 0 }

func envHash(c *corev1.Container, value func(feed) string) (uint64, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value,omitempty"`
	}
	var env []variable
	for _, f := range fedBy(c) {
		env = append(env, variable{f.env, value(f)})
	}
	slices.SortStableFunc(env, func(a, b variable) int { return cmp.Compare(a.Name, b.Name) })
	return hashOf(env)
}

func hashOf(v any) (uint64, error) {
	n, err := revision.Fingerprint(v)
	return uint64(n), err
}

// runtimeOf reads what the node daemon reports of a pod's containers; nil where no daemon has reported.
func runtimeOf(pod *corev1.Pod) (*kruise.RuntimeContainerMetaSet, error) {
	return decode[kruise.RuntimeContainerMetaSet](
		kruise.RuntimeContainerMetaKey, pod.Annotations[kruise.RuntimeContainerMetaKey])
}

// unlike is the first container that does not run what its spec says, by a hash; empty when all do. The
// containers are those that every pod waits for, sidecars of other owners included.
func unlike(
	r *kruise.RuntimeContainerMetaSet, pod *corev1.Pod, same func(*corev1.Container, kruise.RuntimeContainerHashes) bool,
) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := statusOf(pod, c.Name)
		at := slices.IndexFunc(r.Containers, func(m kruise.RuntimeContainerMeta) bool { return m.Name == c.Name })
		if status == nil || at < 0 {
			return c.Name
		}
		if m := &r.Containers[at]; m.ContainerID != status.ContainerID || !same(c, m.Hashes) {
			return c.Name
		}
	}
	return ""
}

func samePlain(c *corev1.Container, h kruise.RuntimeContainerHashes) bool {
	current, older, err := PlainHashes(c)
	return err == nil && (h.PlainHash == current || h.PlainHash == older)
}

// sameEnv compares with the labels and annotations that the pod has now.
func sameEnv(pod *corev1.Pod) func(*corev1.Container, kruise.RuntimeContainerHashes) bool {
	return func(c *corev1.Container, h kruise.RuntimeContainerHashes) bool {
		hash, err := EnvHash(c, pod.Labels, pod.Annotations)
		return err == nil && h.ExtractedEnvFromMetadataHash == hash
	}
}

// statusOf finds the status of a container.
func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
