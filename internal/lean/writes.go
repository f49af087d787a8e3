package lean

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
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
