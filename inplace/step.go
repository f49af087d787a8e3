package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// recheck is how long a pod waits at most for its node before the next look.
const recheck = time.Minute

// settle is how long a node has to answer a resize before its answer counts: until then it may be to an older one.
const settle = 10 * time.Second

// step continues an update that has begun.
func (l look) step() (Action, error) {
	pod := l.pod
	if pod.DeletionTimestamp != nil || finished(pod) {
		return Action{Verdict: Ignore}, nil
	}
	grace, err := GraceOf(pod, l.rules.keys)
	if err != nil {
		return Action{}, err
	}
	state, err := StateOf(pod, l.rules.keys)
	if err != nil {
		return Action{}, err
	}
	if grace != nil {
		return l.endGrace(grace, state)
	}
	if hasGrace(pod, l.rules.keys) { // of an empty text, with which the update would never be complete
		return l.patch(StepGrace, func(p *patch) error { return l.edit().encode(p) }), nil
	}
	if state == nil {
		return l.makeReady(), nil
	}
	if waits := incomplete(pod, state, l.rules); waits.code != "" {
		return l.patience(state, waits), nil
	}
	if hasMore(state) {
		return l.nextBatch(state)
	}
	return l.makeReady(), nil
}

// patience waits for the node, or gives the pod up where the policy allows that.
func (l look) patience(s *kruise.InPlaceUpdateState, w waiting) Action {
	pod, r, now := l.pod, l.rules, l.now
	limit := time.Duration(-1)
	switch {
	case w.code == NoteInfeasible && r.recreateInfeasible:
		limit = settle
	case w.code == NoteDeferred && r.recreateDeferred > 0:
		limit = max(settle, r.recreateDeferred)
	}
	if limit < 0 {
		return wait(recheck, w.of(pod))
	}
	begun := s.UpdateTimestamp.Time
	if n := len(s.ContainerBatchesRecord); n > 0 {
		begun = s.ContainerBatchesRecord[n-1].Timestamp.Time
	}
	if rest := begun.Add(limit).Sub(now); rest > 0 {
		return wait(min(rest, recheck), w.of(pod))
	}
	return Action{Verdict: Recreate, Notes: []note.Note{w.of(pod)}}
}

func wait(after time.Duration, why note.Note) Action {
	return Action{Verdict: Wait, After: after, Notes: []note.Note{why}}
}

// endGrace waits for the end of the grace period, and then writes the change.
func (l look) endGrace(g *kruise.InPlaceUpdateGrace, s *kruise.InPlaceUpdateState) (Action, error) {
	if s == nil {
		return Action{}, &AnnotationError{Key: l.rules.keys.InPlaceStateKey(), Err: errNoState}
	}
	c, err := l.planned(g)
	if err != nil {
		return Action{}, err
	}
	if !revision.Match(l.rules.revisionOf(l.pod), g.Revision) {
		// The pod has got another revision meanwhile.
		return l.patch(StepGrace, func(p *patch) error { return l.edit().encode(p) }), nil
	}
	// A time far ahead is no time to wait for.
	grace := time.Duration(g.GraceSeconds) * time.Second
	if rest := s.UpdateTimestamp.Add(grace).Sub(l.now); rest > 0 && rest <= 2*grace {
		whole := (rest + time.Second - 1).Truncate(time.Second)
		return wait(whole, newNote(l.pod, NoteGrace, "the change is written when the grace period ends")), nil
	}
	return l.applyNext(s, c), nil
}

// nextBatch waits for the containers of the last batch, and then writes the next.
func (l look) nextBatch(s *kruise.InPlaceUpdateState) (Action, error) {
	if s.PreCheckBeforeNext != nil {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			status := statusOf(l.pod, name)
			if status == nil && containerOf(l.pod, name) == nil {
				continue
			}
			if status == nil || !status.Ready {
				return wait(recheck, newNote(l.pod, NoteBatch, "container "+name+" is not ready; others wait for it")), nil
			}
		}
	}
	return l.applyNext(s, left(s)), nil
}

func (l look) applyNext(s *kruise.InPlaceUpdateState, c *Change) Action {
	if action, ok := l.resize(c); ok {
		return action
	}
	action := l.patch(StepChange, func(p *patch) error { return l.edit().apply(p, s.DeepCopy(), c) })
	action.Restarts = l.restartsOf(c)
	return action
}

// makeReady puts a pod whose update is complete back into traffic.
func (l look) makeReady() Action {
	pod, gate := l.pod, l.gate()
	if !lifecycle.HasGate(pod, gate) || statusOfCondition(pod, gate) == corev1.ConditionTrue {
		return l.relabel()
	}
	if pod.Status.Phase == corev1.PodPending && statusOfCondition(pod, corev1.ContainersReady) == "" {
		// The kubelet is about to report for the first time. Until then nothing depends on the gate, and of two writers that
		// add conditions one is rejected.
		return wait(recheck, newNote(pod, NoteNotStarted, "the kubelet has not reported the pod's containers yet"))
	}
	return Action{Verdict: Write, Step: StepReady, Write: l.write(write.Status, func(p *patch) error {
		l.unchanged(p)
		ready := corev1.PodCondition{
			Type: gate, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.now),
		}
		p.ops = append(p.ops, lifecycle.SetConditions(pod, ready)...)
		return nil
	})}
}
