package driver

import (
	"context"
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
	// maxPodWrites bounds the writes of one call. An update has at most three that follow each other.
	maxPodWrites = 8
	// retryOutdated is when to look again at a pod that has changed: an event announces the change as a rule.
	retryOutdated = time.Second
)

// PodOptions are the policy and the clock of UpdatePod.
type PodOptions struct {
	Policy inplace.Policy
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// UpdatePod updates one pod in place as far as that goes now: it begins the update of u, or continues the one that has
// begun, and returns the pod as the last write left it with what to do next. It is for a controller that has a loop
// over its pods of its own; package workload plans the updates of all pods, with their budget. A pod that has changed
// since it was observed is waited for, and a pod that is gone is ignored. The notes are those of all steps.
func UpdatePod(
	ctx context.Context, send Send, u inplace.Update, o PodOptions,
) (*corev1.Pod, inplace.Action, error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options
	}
	var notes []note.Note
	for range maxPodWrites {
		action, err := inplace.Next(u, o.Policy, o.Now())
		if err != nil {
			return u.Pod, inplace.Action{}, fmt.Errorf("update pod %s: %w", u.Pod.Name, err)
		}
		if notes = append(notes, action.Notes...); action.Verdict != inplace.Write {
			action.Notes = notes
			return u.Pod, action, nil
		}
		object, err := send(ctx, action.Write)
		pod, answered := object.(*corev1.Pod)
		switch {
		case err == nil && answered:
			u.Pod = pod
		case err == nil:
			return u.Pod, inplace.Action{}, fmt.Errorf("%s: the answer is a %T", action.Write, object)
		case apierrors.IsNotFound(err) && write.IsOutdated(err):
			return u.Pod, inplace.Action{Verdict: inplace.Ignore, Notes: notes}, nil
		case write.IsOutdated(err):
			return u.Pod, outdated(u.Pod, notes, "the pod has changed since it was observed"), nil
		default:
			return u.Pod, inplace.Action{}, fmt.Errorf("%s: %w", action.Write, err)
		}
	}
	return u.Pod, outdated(u.Pod, notes, "another writer reverts the update of the pod"), nil
}

func outdated(pod *corev1.Pod, notes []note.Note, why string) inplace.Action {
	n := note.Note{Level: note.Waiting, Code: NoteOutdated, Object: pod.Name, Text: why}
	return inplace.Action{Verdict: inplace.Wait, After: retryOutdated, Notes: append(notes, n)}
}
