package markers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// CatchUp is how long a reconciler waits for the cache to have the write of another client.
	CatchUp = time.Second
	// ReasonFailedMark is the reason of the event of a pod that the API server does not let be marked.
	ReasonFailedMark = "FailedMark"
)

// Sender marks pods. Its zero value with the exported fields is ready.
type Sender struct {
	API *binding.Binding
	// Pods are the own writes of pods.
	Pods *ledger.Ledger[*corev1.Pod]

	repeats memory.Of[types.NamespacedName, workload.Repeats]
}

// Forget drops what is known of an owner that is gone.
func (s *Sender) Forget(owner types.NamespacedName) {
	s.Pods.Forget(owner)
	s.repeats.Forget(owner)
}

// Send sends patches of pods, records the answers for an owner, and returns when to look again; zero for when something happens. A pod
// that cannot be marked holds up no other one: the API server would refuse the same marks again, so that there is an event and no error. Marks that
// another writer reverts are written again less and less often.
func (s *Sender) Send(ctx context.Context, owner types.NamespacedName, marks []workload.Cause) (time.Duration, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	due, later, next := s.repeats.Recall(owner).Due(marks, s.API.Now())
	s.repeats.Note(owner, func(known *workload.Repeats) { *known = next })
	var outdated atomic.Bool
	_, err := batches.Each(due, func(w *write.Write) error {
		data, err := w.Data()
		if err != nil {
			return fmt.Errorf("encode marks of pod: %w", err)
		}
		answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Object.GetNamespace(), Name: w.Object.GetName()}}
		err = s.API.Client.Status().Patch(ctx, answer, client.RawPatch(w.Type, data))
		switch {
		case write.IsOutdated(err):
			outdated.Store(true)
			return nil
		case write.IsFinal(err):
			s.API.Warningf(w.Object, ReasonFailedMark, "Failed to mark the pod with results of probes: %v", err)
			return nil
		case err != nil:
			return fmt.Errorf("mark pod %s/%s: %w", w.Object.GetNamespace(), w.Object.GetName(), err)
		}
		s.Pods.Patched(owner, answer)
		return nil
	})
	if outdated.Load() {
		later = requeue.Sooner(later, CatchUp)
	}
	return later, err
}
