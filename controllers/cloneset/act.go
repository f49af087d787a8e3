package cloneset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// act carries out one plan. It is the only part that writes.
type act struct {
	*Reconciler
	*snapshot

	plan                *plan
	scaleErr, updateErr error
	// after is when to look again at the latest; zero for never.
	after time.Duration

	// mu guards what writes at the same time share: after, notes, the snapshot's pods, the plan's changes.
	mu    sync.Mutex
	notes []note.Note
	index map[types.UID]int
}

// wake asks to look again after a time.
func (a *act) wake(after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after = sooner(a.after, after)
}

// at is the place of a pod in the snapshot.
func (a *act) at(pod *corev1.Pod) (int, bool) {
	if a.index == nil {
		a.index = make(map[types.UID]int, len(a.pods))
		for i, p := range a.pods {
			a.index[p.UID] = i
		}
	}
	i, ok := a.index[pod.UID]
	return i, ok
}

// replace puts a pod as the API server answered into the snapshot, for the status.
func (a *act) replace(fresh *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, ok := a.at(fresh); ok {
		a.pods[i] = fresh
	}
}

// latest is a pod as the last write left it.
func (a *act) latest(pod *corev1.Pod) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, ok := a.at(pod); ok {
		return a.pods[i]
	}
	return pod
}

// lead releases what the set no longer selects, and then either changes the number of pods or leads updates on. Updates
// go on when the number could not be changed at all.
func (a *act) lead(ctx context.Context) {
	if a.unfit = a.misfit(a.plan.update, &a.set.Spec.Template); a.unfit != nil {
		a.scaleErr = a.unfit
		return
	}
	a.giveUpUnborn()
	if a.scaleErr = errors.Join(a.release(ctx), a.disown(ctx), a.bury(ctx)); a.scaleErr != nil {
		return
	}
	a.wake(a.plan.scale.RequeueAfter)
	var changed bool
	if changed, a.scaleErr = a.scale(ctx); changed {
		return
	}
	if a.scaleErr != nil {
		again := a.scaleInput(a.snapshot, a.plan)
		again.UpdateOnly = true
		updates, err := scale.Plan(again)
		if err != nil {
			a.updateErr = err
			return
		}
		a.plan.follow(updates)
	}
	if changed, a.updateErr = a.refresh(ctx); changed || a.updateErr != nil {
		return
	}
	a.updateErr = a.update(ctx)
}

// scale changes the number of pods. changed is true when any write succeeded.
func (a *act) scale(ctx context.Context) (changed bool, err error) {
	p := &a.plan.scale
	a.tellLimit()
	switch {
	case len(p.Restore) > 0:
		n, err := batches.Run(p.Restore, func(i scale.Instance) error {
			return a.move(ctx, i.Pods[0], lifecycle.Move{To: pub.LifecycleStatePreparingNormal})
		})
		return n > 0, err
	case len(p.Create) > 0:
		return a.create(ctx, p.Create)
	case len(p.Delete) > 0:
		n, err := batches.Run(p.Delete, func(i scale.Instance) error { return a.remove(ctx, i.Pods[0]) })
		return n > 0, err
	}
	return false, nil
}

// remove deletes a pod with its claims, unless a hook holds it.
func (a *act) remove(ctx context.Context, pod *corev1.Pod) error {
	if verdict, move := lifecycle.BeforeDelete(a.situation(pod)); verdict != lifecycle.Go {
		return a.move(ctx, pod, move)
	}
	err := a.client.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		a.tell(corev1.EventTypeWarning, reasonFailedDelete, "failed to delete pod %s: %v", pod.Name, err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	a.podWrites.Deleted(a.key(), pod)
	a.tell(corev1.EventTypeNormal, reasonDeleted, "succeed to delete pod %s", pod.Name)
	return a.removeClaims(ctx, pod)
}

// refresh leads every pod on whose update has begun, and its state. changed is true when the next pass is to see the result
// first.
func (a *act) refresh(ctx context.Context) (changed bool, err error) {
	pods := slices.Clone(a.pods)
	moved := make([]bool, len(pods))
	var busy []int
	for i, pod := range pods {
		if !a.idle(pod) {
			busy = append(busy, i)
		}
	}
	_, err = batches.Run(busy, func(i int) error {
		pod, err := a.step(ctx, pods[i])
		if err != nil {
			return err
		}
		if move := a.settle(pod); move != (lifecycle.Move{}) {
			moved[i] = true
			return a.move(ctx, pod, move)
		}
		moved[i], err = a.labelHash(ctx, pod)
		return err
	})
	return slices.Contains(moved, true), err
}

// idle says that nothing is to be written for a pod now.
func (a *act) idle(pod *corev1.Pod) bool {
	action, err := inplace.Next(inplace.Update{Pod: pod}, a.options.policy(), a.now)
	if err != nil || action.Verdict == inplace.Write || a.settle(pod) != (lifecycle.Move{}) {
		return false
	}
	a.awaitGrace(action)
	_, labelled := pod.Labels[pub.PodTemplateHashLabelKey]
	return labelled || pod.Labels[pub.PodRevisionLabelKey] == ""
}

// awaitGrace asks to look again when a grace period ends: nothing else will tell.
func (a *act) awaitGrace(action inplace.Action) {
	a.noteWaits(action)
	if action.Verdict == inplace.Wait && len(action.Notes) > 0 && action.Notes[0].Code == inplace.NoteGrace {
		a.wake(action.After)
	}
}

// step makes the writes that an update under way needs now.
func (a *act) step(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	for {
		action, err := inplace.Next(inplace.Update{Pod: pod}, a.options.policy(), a.now)
		if err != nil {
			return pod, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		a.awaitGrace(action)
		if action.Verdict != inplace.Write {
			return pod, nil
		}
		if pod, err = a.write(ctx, pod, action.Write); err != nil {
			return pod, err
		}
	}
}

// update moves the planned pods to their revision.
func (a *act) update(ctx context.Context) error {
	var allowed []*corev1.Pod
	for _, instance := range a.plan.scale.Update {
		if a.options.MayUpdate != nil {
			if ok, why := a.options.MayUpdate(instance.Pods[0]); !ok {
				a.note(note.Note{Code: NoteRefused, Object: instance.Name, Text: why})
				a.wake(time.Second)
				break
			}
		}
		// As the refresh left it.
		allowed = append(allowed, a.latest(instance.Pods[0]))
	}
	_, err := batches.Run(allowed, func(pod *corev1.Pod) error { return a.updatePod(ctx, pod) })
	return err
}

// settle is the move that follows from what a pod has become. One that is new and updated already is settled when that is
// done.
func (a *act) settle(pod *corev1.Pod) lifecycle.Move {
	if lifecycle.StateOf(pod) == pub.LifecycleStatePreparingNormal {
		if completed, _ := inplace.Completed(pod, a.options.policy()); !completed {
			return lifecycle.Move{}
		}
	}
	return lifecycle.Settle(a.situation(pod))
}

// situation is a pod as its hooks see it.
func (a *act) situation(pod *corev1.Pod) lifecycle.Situation {
	completed := true
	if lifecycle.StateOf(pod) == pub.LifecycleStateUpdating {
		completed, _ = inplace.Completed(pod, a.options.policy())
	}
	return lifecycle.Situation{
		Pod: pod, Hooks: a.set.Spec.Lifecycle, NeedsNode: true, Completed: completed,
		// One that goes back from the update revision is not where it should be.
		AtTarget: revision.Match(pod.Labels[pub.PodRevisionLabelKey], a.plan.update) && !a.plan.back[pod.Name],
	}
}
