package lean

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// record replaces the hashes of kubelets before 1.31, which are of a whole container, by those of later ones, in what a
// daemon has recorded of the pod. A lean container cannot be compared with the hash of the whole. Nothing writes this
// annotation but the daemon.
func record(pod *corev1.Pod) {
	text, is := pod.Annotations[kruise.RuntimeContainerMetaKey]
	if !is {
		return
	}
	var set kruise.RuntimeContainerMetaSet
	if json.Unmarshal([]byte(text), &set) != nil {
		return
	}
	changed := false
	for i := range set.Containers {
		meta := &set.Containers[i]
		at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == meta.Name })
		if at < 0 {
			continue
		}
		later, older, err := inplace.PlainHashes(&pod.Spec.Containers[at])
		if err == nil && meta.Hashes.PlainHash == older && older != later {
			meta.Hashes.PlainHash, changed = later, true
		}
	}
	if !changed {
		return
	}
	if data, err := json.Marshal(set); err == nil {
		pod.Annotations[kruise.RuntimeContainerMetaKey] = string(data)
	}
}
