package inplace

import (
	"errors"
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

// step continues an update that has begun.
func (l look) step() (Action, error) {
	pod := l.pod
	if pod.DeletionTimestamp != nil || finished(pod) {
		return Action{Verdict: Ignore}, nil
	}
	grace, err := GraceOf(pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if grace != nil {
		return l.endGrace(grace)
	}
	if hasGrace(pod, l.policy.Keys) { // of an empty text, with which the update would never be complete
		return l.patch(StepGrace, func(p *patch) error { return l.edit().encode(p) }), nil
	}
	state, err := underWay(pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if state == nil {
		return l.makeReady(), nil
	}
	if waits := incomplete(pod, state, l.policy); waits.code != "" {
		return wait(recheck, waits.of(pod)), nil
	}
	if hasMore(state) {
		return l.nextBatch(state)
	}
	return l.makeReady(), nil
}

func wait(after time.Duration, why note.Note) Action {
	return Action{Verdict: Wait, After: after, Notes: []note.Note{why}}
}

// endGrace waits for the end of the grace period, and then writes the change.
func (l look) endGrace(g *kruise.InPlaceUpdateGrace) (Action, error) {
	s, err := StateOf(l.pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if s == nil {
		missing := errors.New("is missing, although the pod has a grace period")
		return Action{}, unreadable(l.policy.Keys.InPlaceStateKey(), missing)
	}
	c, err := l.planned(g)
	if err != nil {
		return Action{}, err
	}
	if !revision.Match(RevisionOf(l.pod, l.policy), g.Revision) {
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
			if status == nil && find(l.pod.Spec.Containers, name) == nil {
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
