package cloneset

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// updatePod moves one pod to the target: in place where the policy and the change allow it, else by a new pod.
func (a *act) updatePod(ctx context.Context, pod *corev1.Pod) error {
	policy := a.plan.rolling.PodUpdatePolicy
	if policy != v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType && policy != v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType {
		return a.recreate(ctx, pod)
	}
	change, blocked := a.changeOf(pod)
	if blocked != nil {
		if policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType {
			err := fmt.Errorf("pod %s can only be updated in place: %w", pod.Name, blocked)
			if old := conditionOf(&a.set.Status, v1beta1.CloneSetConditionFailedUpdate); old == nil || !strings.Contains(old.Message, err.Error()) {
				a.tell(corev1.EventTypeWarning, reasonFailedInPlace, "failed to update pod %s in-place: %v", pod.Name, blocked)
			}
			return err
		}
		a.note(note.Note{Code: NoteNotInPlace, Object: pod.Name, Text: blocked.Error()})
		return a.recreate(ctx, pod)
	}
	situation := a.situation(pod)
	situation.AtTarget = false
	switch verdict, move := lifecycle.BeforeUpdate(situation); verdict {
	case lifecycle.Wait:
		return a.move(ctx, pod, move)
	case lifecycle.Stop:
		return fmt.Errorf("pod %s is in state %q, which no update starts from", pod.Name, lifecycle.StateOf(pod))
	}
	return a.updateInPlace(ctx, pod, change)
}

// stateWhileUpdated is Updating, but for a pod that its preNormal hook has not let become Normal: updated or not, it waits for
// that.
func (a *act) stateWhileUpdated(pod *corev1.Pod) pub.LifecycleState {
	if a.isExpected(pod) {
		return pub.LifecycleStatePreparingNormal
	}
	return pub.LifecycleStateUpdating
}

// isExpected says that a preNormal hook keeps a pod from becoming Normal.
func (a *act) isExpected(pod *corev1.Pod) bool {
	hooks := a.set.Spec.Lifecycle
	return hooks != nil && hooks.PreNormal != nil && lifecycle.StateOf(pod) == pub.LifecycleStatePreparingNormal && !lifecycle.HasAll(pod, hooks.PreNormal)
}

func (a *act) updateInPlace(ctx context.Context, pod *corev1.Pod, change *inplace.Change) error {
	target := a.plan.target()
	u := inplace.Update{
		Pod: pod, Change: change, Revision: a.revisionLabel(target),
		Labels: map[string]string{
			pub.PodTemplateHashLabelKey: revision.Short(target),
			pub.LifecycleStateKey:       string(a.stateWhileUpdated(pod)),
		},
		Annotations: map[string]string{pub.LifecycleTimestampKey: a.now.Format(time.RFC3339)},
	}
	if s := a.plan.rolling.InPlaceUpdateStrategy; s != nil {
		u.GraceSeconds = s.GracePeriodSeconds
	}
	for u.Pod.Labels[pub.PodRevisionLabelKey] != u.Revision {
		action, err := inplace.Next(u, a.options.policy(), a.now)
		if err == nil && action.Verdict == inplace.Write {
			u.Pod, err = a.write(ctx, u.Pod, action.Write)
		}
		switch {
		case err != nil:
			a.tell(corev1.EventTypeWarning, reasonFailedInPlace, "failed to update pod %s in-place: %v", pod.Name, err)
			return fmt.Errorf("update pod %s in place: %w", pod.Name, err)
		case action.Verdict == inplace.Recreate:
			return a.recreate(ctx, pod)
		case action.Verdict != inplace.Write:
			return nil
		}
	}
	if u.GraceSeconds > 0 {
		a.wake(time.Duration(u.GraceSeconds) * time.Second)
	}
	a.tell(corev1.EventTypeNormal, reasonUpdatedInPlace, "successfully update pod %s in-place(revision %s)", pod.Name, target)
	return nil
}

// recreate marks a pod to be deleted under the rules of scaling.
func (a *act) recreate(ctx context.Context, pod *corev1.Pod) error {
	if _, marked := pod.Labels[pub.SpecifiedDeleteKey]; marked {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:"true"}}}`, pod.UID, pub.SpecifiedDeleteKey)
	if _, err := a.patch(ctx, pod, merge([]byte(patch)), write.Main); err != nil {
		a.tell(corev1.EventTypeWarning, reasonFailedRecreated, "failed to patch pod specified-delete %s for update(revision %s): %v", pod.Name, a.plan.target(), err)
		return fmt.Errorf("mark pod %s to be deleted: %w", pod.Name, err)
	}
	a.tell(corev1.EventTypeNormal, reasonRecreated, "successfully patch pod %s specified-delete for update(revision %s)", pod.Name, a.plan.target())
	return nil
}

// revisionLabel is the value of the pods' label controller-revision-hash for a revision.
func (a *act) revisionLabel(name string) string {
	if a.options.ShortHash {
		return revision.Short(name)
	}
	return name
}
