package driver

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// NoteOutdated waits for the pod as another writer has left it.
	NoteOutdated = "InPlaceOutdated"

	// maxPodWrites bounds the writes of one pass. An update has at most three that follow each other.
	maxPodWrites = 8
	// retryOutdated is when to look again at a pod that has changed: an event announces the change as a rule.
	retryOutdated = time.Second
)

// PodUpdate is the pass that updates one pod in place as far as that goes now. It is for a controller that has a loop
// over its pods of its own; package workload plans the updates of all pods, with their budget.
type PodUpdate struct {
	update  inplace.Update
	policy  inplace.Policy
	now     time.Time
	action  inplace.Action
	notes   []note.Note
	writes  int
	started bool
	err     error
}

// UpdatePod returns the pass that begins or continues the update of a pod: see inplace.Next. now is the time of the
// first write.
func UpdatePod(u inplace.Update, p inplace.Policy, now time.Time) *PodUpdate {
	return &PodUpdate{update: u, policy: p, now: now}
}

// Action returns what to do with the pod after the pass: wait, recreate, or nothing. Its notes are those of the whole
// pass. The verdict is empty where the pass failed.
func (u *PodUpdate) Action() inplace.Action {
	action := u.action
	action.Notes = u.notes
	return action
}

// Pod returns the pod as the last answer left it.
func (u *PodUpdate) Pod() *corev1.Pod { return u.update.Pod }

// Next returns the first write of the pass.
func (u *PodUpdate) Next() []*write.Write {
	if u.started {
		return nil
	}
	u.started = true
	return u.next(u.now)
}

func (u *PodUpdate) next(now time.Time) []*write.Write {
	action, err := inplace.Next(u.update, u.policy, now)
	if err != nil {
		u.err = fmt.Errorf("update pod %s: %w", u.update.Pod.Name, err)
		return nil
	}
	u.notes = append(u.notes, action.Notes...)
	if action.Verdict != inplace.Write {
		u.action = action
		return nil
	}
	if u.writes == maxPodWrites {
		u.outdated("another writer reverts the update of the pod")
		return nil
	}
	u.writes++
	return []*write.Write{action.Write}
}

func (u *PodUpdate) outdated(why string) {
	u.action = inplace.Action{Verdict: inplace.Wait, After: retryOutdated}
	u.notes = append(u.notes, note.Note{
		Level: note.Waiting, Code: NoteOutdated, Object: u.update.Pod.Name, Text: why,
	})
}

// Answer takes the pod as the API server answered, and returns the write that follows. A pod that has changed is no
// failure: its next state is waited for. A pod that is gone is ignored.
func (u *PodUpdate) Answer(now time.Time, w *write.Write, object write.Object, err error) []*write.Write {
	pod, answered := object.(*corev1.Pod)
	switch {
	case err == nil && answered:
		u.update.Pod = pod
		return u.next(now)
	case err == nil:
		u.err = fmt.Errorf("%s: the answer is a %T", w, object)
	case apierrors.IsNotFound(err) && write.IsOutdated(err):
		u.action = inplace.Action{Verdict: inplace.Ignore}
	case write.IsOutdated(err):
		u.outdated("the pod has changed since it was observed")
	default:
		u.err = fmt.Errorf("%s: %w", w, err)
	}
	return nil
}

// Err returns why the pass failed.
func (u *PodUpdate) Err() error { return u.err }

// Notes returns why the update waits, or what is to be known of it.
func (u *PodUpdate) Notes() []note.Note { return u.notes }

// RequeueAfter returns when to look again at the latest.
func (u *PodUpdate) RequeueAfter() time.Duration { return u.action.After }
