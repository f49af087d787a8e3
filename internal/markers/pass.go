package markers

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// CatchUp is how long a reconciler waits for the cache to have the write of another client.
	CatchUp = time.Second
	// ReasonFailedMark is the reason of the event of a pod that the API server does not let be marked.
	ReasonFailedMark = "FailedMark"
)

// Pass is a pass of writes that nothing follows. What was decided upon an older object is decided again after CatchUp.
type Pass struct {
	// Outdated reports that a write was decided upon an older object.
	Outdated bool

	writes []*write.Write
	// marks are patches of pods. The API server would refuse the same marks again, so that a refusal is no error.
	marks  bool
	later  time.Duration
	failed []error
}

// Write returns the pass of one write; nil writes nothing.
func Write(w *write.Write) *Pass {
	p := &Pass{}
	if w != nil {
		p.writes = append(p.writes, w)
	}
	return p
}

// Mark returns the pass that marks pods, and the repetitions that the next pass needs. A pod that cannot be marked
// holds up no other one. Marks that another writer reverts are written again less and less often.
func Mark(marks []workload.Cause, known workload.Repeats, now time.Time) (*Pass, workload.Repeats) {
	p := &Pass{marks: true}
	if len(marks) > 0 {
		p.writes, p.later, known = known.Due(marks, now)
	}
	return p, known
}

// Next returns the writes.
func (p *Pass) Next() []*write.Write {
	writes := p.writes
	p.writes = nil
	return writes
}

// Answer takes what was answered to a write.
func (p *Pass) Answer(_ time.Time, w *write.Write, _ write.Object, err error) []*write.Write {
	switch {
	case err == nil:
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err): // its event is on the way
	case w.Verb == write.Delete && apierrors.IsNotFound(err):
	case write.IsOutdated(err):
		p.Outdated = true
	case p.marks && write.IsFinal(err):
	case p.marks:
		p.failed = append(p.failed, fmt.Errorf("mark pod %s/%s: %w", w.Object.GetNamespace(), w.Object.GetName(), err))
	default:
		p.failed = append(p.failed, fmt.Errorf("%s: %w", w, err))
	}
	return nil
}

// Err joins what failed.
func (p *Pass) Err() error { return errors.Join(p.failed...) }

// Notes returns none.
func (*Pass) Notes() []note.Note { return nil }

// RequeueAfter returns when the marks are due that are not now, and when the cache has caught up.
func (p *Pass) RequeueAfter() time.Duration {
	if p.Outdated {
		return requeue.Sooner(p.later, CatchUp)
	}
	return p.later
}

// EmitRefused emits the event of a pod that the API server does not let be marked.
func EmitRefused(api *binding.Binding, w *write.Write, err error) {
	if pod, is := w.Object.(*corev1.Pod); is && !write.IsOutdated(err) && write.IsFinal(err) {
		api.Warningf(pod, ReasonFailedMark, "Failed to mark the pod with results of probes: %v", err)
	}
}

// Memory has what a reconciler has written to the pods that it marks. Its zero value with a ledger is ready.
type Memory struct {
	// Pods are the own writes of pods.
	Pods *ledger.Ledger[*corev1.Pod]

	repeats memory.Of[types.NamespacedName, workload.Repeats]
}

// Forget drops what is known of an owner that is gone.
func (m *Memory) Forget(owner types.NamespacedName) {
	m.Pods.Forget(owner)
	m.repeats.Forget(owner)
}

// Repeats returns the marks of recent passes.
func (m *Memory) Repeats(owner types.NamespacedName) workload.Repeats { return m.repeats.Recall(owner) }

// Keep keeps the marks of recent passes.
func (m *Memory) Keep(owner types.NamespacedName, repeats workload.Repeats) {
	m.repeats.Note(owner, func(known *workload.Repeats) { *known = repeats })
}
