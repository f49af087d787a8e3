package lean

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/ledger"
)

// NewWrites returns a ledger of pods, which keeps of them what a cache does: an answer lies in it until the next pass.
func NewWrites(live client.Reader, now func() time.Time) *ledger.Ledger[*corev1.Pod] {
	return ledger.New[*corev1.Pod](live, now).Keeping(kept)
}

// kept shares with the answer what Pod leaves as it is: nothing writes to an answer.
func kept(pod *corev1.Pod) *corev1.Pod {
	slim := *pod
	if _, is := pod.Annotations[kruise.RuntimeContainerMetaKey]; is { // which Pod may replace
		slim.Annotations = maps.Clone(pod.Annotations)
	}
	for _, statuses := range []*[]corev1.ContainerStatus{
		&slim.Status.InitContainerStatuses, &slim.Status.ContainerStatuses, &slim.Status.EphemeralContainerStatuses,
	} {
		*statuses = slices.Clone(*statuses)
	}
	Pod(&slim)
	return &slim
}

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
