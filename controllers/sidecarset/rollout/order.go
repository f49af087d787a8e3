package rollout

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/scale"
)

// byStanding sorts pods in the order in which ReplicaSets delete them, then by name.
func byStanding(all []*member) {
	standings := make(map[*member][]int64, len(all))
	for _, m := range all {
		keys := scale.Standing(m.pod) // the age is the last one
		standings[m] = slices.Insert(keys, len(keys)-1, -nativeRestarts(m.pod))
	}
	slices.SortFunc(all, func(a, b *member) int {
		return cmp.Or(slices.Compare(standings[a], standings[b]), byName(a, b))
	})
}

// nativeRestarts returns the largest number of restarts of the native sidecars of a pod.
func nativeRestarts(pod *corev1.Pod) (most int64) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		for j := range pod.Status.InitContainerStatuses {
			if s := &pod.Status.InitContainerStatuses[j]; s.Name == c.Name {
				most = max(most, int64(s.RestartCount))
			}
		}
	}
	return most
}
