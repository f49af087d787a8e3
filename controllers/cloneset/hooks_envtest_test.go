//go:build envtest

package cloneset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

const (
	normal          = pub.LifecycleStateNormal
	preparingNormal = pub.LifecycleStatePreparingNormal
	preparingUpdate = pub.LifecycleStatePreparingUpdate
	preparingDelete = pub.LifecycleStatePreparingDelete
	updating        = pub.LifecycleStateUpdating
)

type inStates = map[pub.LifecycleState]int

const released = `{"labels":{"example.com/hook":null}}`

// A pod that is chosen to go, and that its hook holds, counts until it is gone.
func TestChosenPodIsHeld(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		withDeleteHook(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	before := b.pods(set)
	b.patch(&before[0], fmt.Sprintf(`{"labels":{%q:"true"}}`, pub.SpecifiedDeleteKey))
	b.eventually(set, all(states(inStates{preparingDelete: 1, normal: 2}), counts(3, 2), reason("CloneSetUpdated")))
	b.stays(set, counts(3, 2))
	b.patch(&before[0], released)
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	left := names(b.pods(set))
	for i, pod := range before {
		if slices.Contains(left, pod.Name) != (i > 0) {
			t.Errorf("pods %v, from %v; only %s was chosen", left, names(before), before[0].Name)
		}
	}
}

// What is held before its deletion does not count with excludePreparingDelete, so that another pod comes early.
func TestHeldPodIsNotCounted(t *testing.T) {
	for name, o := range map[string]struct {
		options cloneset.Options
		field   bool
	}{"field of the set": {cloneset.Options{}, true}, "option of all sets": {cloneset.Options{ExcludePreparingDelete: true}, false}} {
		t.Run(name, func(t *testing.T) {
			b := start(t, o.options)
			set := b.create("web", 3, func(s *v1beta1.CloneSet) {
				withDeleteHook(s)
				s.Spec.ScaleStrategy.ExcludePreparingDelete = o.field
			})
			b.eventually(set, settled)
			chosen := b.pods(set)[0]
			b.change(set, func(s *v1beta1.CloneSet) {
				s.Spec.Replicas = ptr.To(int32(2))
				s.Spec.ScaleStrategy.PodsToDelete = []string{chosen.Name}
			})
			b.eventually(set, all(states(inStates{preparingDelete: 1, normal: 2}), counts(3, 2)))
			b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(3)) })
			b.eventually(set, all(states(inStates{preparingDelete: 1, normal: 3}), counts(4, 3)))
			b.patch(&chosen, released)
			b.eventually(set, settled)
		})
	}
}

// A new pod is Normal when it has all that its hook asks for, and stays so.
func TestPreNormal(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(2))
		s.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{FinalizersHandler: []string{"example.com/ready"}}}
	})
	b.eventually(set, all(states(inStates{preparingNormal: 1}), counts(1, 0), reason("ProgressDeadlineExceeded")))
	if set.Status.ReadyReplicas != 1 {
		t.Errorf("status %+v", set.Status)
	}
	pod := b.pods(set)[0]
	b.patch(&pod, `{"finalizers":["example.com/ready"]}`)
	b.eventually(set, all(states(inStates{normal: 1}), counts(1, 1), reason("CloneSetAvailable")))
	b.patch(&pod, `{"finalizers":null}`)
	b.stays(set, all(states(inStates{normal: 1}), counts(1, 1)))
}

// A pod that is updated in place before its preNormal hook has let it become Normal still waits for the hook; and one that
// never runs without the update gets the update.
func TestPreNormalOfAnUpdatedPod(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		image("web:broken")(s)
		s.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.com/ready": "yes"}}}
	})
	b.eventually(set, all(states(inStates{preparingNormal: 1}), counts(1, 0)))
	first := b.pods(set)[0]
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 1 || set.Status.UpdatedReadyReplicas != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	b.stays(set, all(states(inStates{preparingNormal: 1}), counts(1, 0)))
	b.patch(&first, `{"labels":{"example.com/ready":"yes"}}`)
	b.eventually(set, all(settled, states(inStates{normal: 1})))
	if b.pods(set)[0].UID != first.UID {
		t.Error("the pod is another one")
	}
	b.patch(&first, `{"labels":{"example.com/ready":null}}`)
	b.change(set, image("web:3"))
	b.eventually(set, all(settled, states(inStates{normal: 1})))
}

// Nothing is written to the containers of a pod that its hook holds; when the user goes back meanwhile, it is left as it was.
func TestRollbackWhileHeld(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, withUpdateHook)
	b.eventually(set, settled)
	first := b.pods(set)[0]
	b.change(set, image("web:2"))
	b.eventually(set, states(inStates{preparingUpdate: 1}))
	b.stays(set, all(states(inStates{preparingUpdate: 1}), images(map[string]int{"web:1": 1})))
	b.change(set, image("web:1"))
	b.eventually(set, all(settled, states(inStates{normal: 1})))
	if now := b.pods(set)[0]; now.UID != first.UID || now.Annotations[pub.InPlaceUpdateStateKey] != "" || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod was touched: %v, %v", now.Annotations, now.Status.ContainerStatuses)
	}
}

// withUpdateHook makes pods that their hook holds before an update in place.
func withUpdateHook(s *v1beta1.CloneSet) {
	inPlace(s)
	s.Spec.Template.Labels["example.com/hook"] = "true"
	s.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}}
}

// While scaling, a pod that is about to be updated counts as updated, so that what is missing is of the current revision. A
// rollout that is late stays late while its pods come along.
func TestPreparingUpdateCountsAsUpdated(t *testing.T) {
	b := start(t, cloneset.Options{PreparingUpdateIsUpdated: true, PartitionRollback: true})
	set := b.create("web", 2, func(s *v1beta1.CloneSet) {
		withUpdateHook(s)
		s.Spec.MinReadySeconds = 1
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(4))
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
	})
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	b.change(set, image("web:2"))
	b.eventually(set, states(inStates{preparingUpdate: 1, normal: 1}))
	var held corev1.Pod
	for _, pod := range b.pods(set) {
		if pod.Labels[pub.LifecycleStateKey] == string(preparingUpdate) {
			held = pod
			continue
		}
		b.delete(pod)
	}
	b.eventually(set, all(counts(2, 1), images(map[string]int{"web:1": 2}), states(inStates{preparingUpdate: 1, normal: 1})))
	b.eventually(set, reason("ProgressDeadlineExceeded"))
	late := condition(set, v1beta1.CloneSetConditionTypeProgressing)
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(3)) })
	b.eventually(set, all(counts(3, 2), images(map[string]int{"web:1": 3}), states(inStates{preparingUpdate: 1, normal: 2})))
	b.patch(&held, released)
	b.eventually(set, images(map[string]int{"web:1": 2, "web:2": 1}))
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Partition = nil
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for _, pod := range pods {
			if pod.UID != held.UID && pod.Labels[pub.LifecycleStateKey] != string(preparingUpdate) {
				return fmt.Errorf("%s is %s", pod.Name, pod.Labels[pub.LifecycleStateKey])
			}
		}
		return nil
	})
	for _, pod := range b.pods(set) {
		b.patch(&pod, released)
	}
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 3 || set.Status.UpdatedReplicas != 3 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	if got := condition(set, v1beta1.CloneSetConditionTypeProgressing); got != late || reason("ProgressDeadlineExceeded")(set, nil) != nil {
		t.Errorf("it was %q, and is %q", late, got)
	}
}

// A pod is out of traffic for its grace period before its containers change.
func TestGracePeriod(t *testing.T) {
	c := &clock{}
	b := start(t, cloneset.Options{Now: c.now})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 3630}
	})
	b.eventually(set, settled)
	first := b.pods(set)[0]
	b.change(set, image("web:2"))
	waiting := func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if pods[0].Annotations[pub.InPlaceUpdateGraceKey] == "" || set.Status.ReadyReplicas != 0 {
			return fmt.Errorf("annotations %v, status %+v", pods[0].Annotations, set.Status)
		}
		return all(states(inStates{updating: 1}), images(map[string]int{"web:1": 1}))(set, pods)
	}
	b.eventually(set, waiting)
	b.advance(c, 10*time.Second, set)
	b.stays(set, waiting)
	b.advance(c, 3630*time.Second, set)
	b.eventually(set, all(settled, images(map[string]int{"web:2": 1}), states(inStates{normal: 1})))
	if now := b.pods(set)[0]; now.UID != first.UID || now.Annotations[pub.InPlaceUpdateGraceKey] != "" {
		t.Errorf("pod %s with annotations %v", now.Name, now.Annotations)
	}
}
