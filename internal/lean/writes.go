package lean

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

// NewWrites returns a ledger of pods, which keeps of them what a cache does: an answer lies in it until the next pass.
func NewWrites(live client.Reader, now func() time.Time) *ledger.Ledger[*corev1.Pod] {
	return ledger.New[*corev1.Pod](live, now).Keeping(kept)
}

func kept(pod *corev1.Pod) *corev1.Pod {
	slim := pod.DeepCopy()
	Pod(slim)
	return slim
}
