package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
)

// recheck is how long a pod waits at most for its node before somebody looks again.
const recheck = time.Minute

// settle is how long a node has to answer a resize before its answer counts: until then it may be to an older one.
const settle = 10 * time.Second

// Step says what to do next with a pod whose update has begun, whoever began it: the pod's annotations tell.
// It is called for every pod, updating or not; it also makes a new pod ready for the first time.
func Step(pod *corev1.Pod, r Rules, now time.Time) (Action, error) {
	if pod.DeletionTimestamp != nil || finished(pod) {
		return Action{Verdict: DoNothing}, nil
	}
	grace, err := GraceOf(pod)
	if err != nil {
		return Action{}, err
	}
	state, err := StateOf(pod)
	if err != nil {
		return Action{}, err
	}
	l := look{pod, r, now}
	if grace != nil {
		return l.endGrace(grace, state)
	}
	if hasGrace(pod) { // of an empty text, with which the update would never be complete
		return write(func(p *patch) error { return l.edit().encode(p) }), nil
	}
	if state == nil {
		return l.makeReady(), nil
	}
	if waits := incomplete(pod, state, r); waits.code != "" {
		return l.patience(state, waits), nil
	}
	if hasMore(state) {
		return l.nextBatch(state)
	}
	return l.makeReady(), nil
}

// patience waits for the node, or gives the pod up where the rules say so.
func (l look) patience(s *pub.InPlaceUpdateState, w waiting) Action {
	pod, r, now := l.pod, l.rules, l.now
	limit := time.Duration(-1)
	switch {
	case w.code == NoteInfeasible && r.RecreateInfeasible:
		limit = settle
	case w.code == NoteDeferred && r.RecreateDeferred > 0:
		limit = max(settle, r.RecreateDeferred)
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
	return Action{Verdict: DoRecreate, Notes: []Note{w.of(pod)}}
}

func wait(after time.Duration, why Note) Action {
	return Action{Verdict: DoWait, After: after, Notes: []Note{why}}
}

// endGrace waits for the end of the grace period, and then writes the change.
func (l look) endGrace(g *pub.InPlaceUpdateGrace, s *pub.InPlaceUpdateState) (Action, error) {
	if s == nil {
		return Action{}, &AnnotationError{Key: pub.InPlaceUpdateStateKey, Err: errNoState}
	}
	c, err := planned(l.pod, g)
	if err != nil {
		return Action{}, err
	}
	if !revision.Match(l.pod.Labels[l.rules.label()], g.Revision) {
		// The pod has got another revision meanwhile.
		return write(func(p *patch) error { return l.edit().encode(p) }), nil
	}
	// A time far ahead is no time to wait for.
	grace := time.Duration(g.GraceSeconds) * time.Second
	if rest := s.UpdateTimestamp.Add(grace).Sub(l.now); rest > 0 && rest <= 2*grace {
		whole := (rest + time.Second - 1).Truncate(time.Second)
		return wait(whole, note(l.pod, NoteGrace, "the change is written when the grace period ends")), nil
	}
	return l.applyNext(s, c), nil
}

// nextBatch waits for the containers of the last batch, and then writes the next.
func (l look) nextBatch(s *pub.InPlaceUpdateState) (Action, error) {
	if s.PreCheckBeforeNext != nil {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			status := statusOf(l.pod, name)
			if status == nil && containerOf(l.pod, name) == nil {
				continue
			}
			if status == nil || !status.Ready {
				return wait(recheck, note(l.pod, NoteBatch, "container "+name+" is not ready; others wait for it")), nil
			}
		}
	}
	return l.applyNext(s, left(s)), nil
}

func (l look) applyNext(s *pub.InPlaceUpdateState, c *Change) Action {
	if w := l.resize(c); w != nil {
		return Action{Verdict: DoWrite, Write: w}
	}
	return write(func(p *patch) error { return l.edit().apply(p, s.DeepCopy(), c) })
}

// makeReady puts a pod whose update is complete back into traffic.
func (l look) makeReady() Action {
	pod := l.pod
	if !lifecycle.HasGate(pod, pub.InPlaceUpdateReady) || statusOfCondition(pod, pub.InPlaceUpdateReady) == corev1.ConditionTrue {
		return Action{Verdict: DoNothing}
	}
	if pod.Status.Phase == corev1.PodPending && statusOfCondition(pod, corev1.ContainersReady) == "" {
		// Its kubelet is about to report for the first time. Until then nothing depends on us, and one of two writers that
		// add conditions is refused.
		return Action{Verdict: DoNothing}
	}
	return Action{Verdict: DoWrite, Write: &Write{Subresource: Status, build: func(p *patch) error {
		l.unchanged(p)
		p.condition(pod, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.now)})
		return nil
	}}}
}
