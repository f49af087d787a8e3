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
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A pod that is chosen for deletion and held by its hook counts until it is gone.
func TestChosenPodIsHeld(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 3, func(s *v1beta1.CloneSet) {
		withDeleteHook(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	before := m.pods(set)
	m.patch(&before[0], fmt.Sprintf(`{"labels":{%q:"true"}}`, kruise.SpecifiedDeleteKey))
	m.eventually(set, all(states(inStates{preparingDelete: 1, normal: 2}), counts(3, 2), reason("CloneSetUpdated")))
	m.stays(set, counts(3, 2))
	m.patch(&before[0], released)
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	left := names(m.pods(set))
	for i, pod := range before {
		if slices.Contains(left, pod.Name) != (i > 0) {
			t.Errorf("pods %v, from %v; only %s was chosen", left, names(before), before[0].Name)
		}
	}
}

// With excludePreparingDelete, a pod that its hook holds before deletion does not count, and its replacement is created
// early.
func TestHeldPodIsNotCounted(t *testing.T) {
	for name, o := range map[string]struct {
		options cloneset.Options
		field   bool
	}{
		"field of the set":   {cloneset.Options{}, true},
		"option of all sets": {cloneset.Options{ExcludePreparingDelete: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, o.options)
			set := m.create("web", 3, func(s *v1beta1.CloneSet) {
				withDeleteHook(s)
				s.Spec.ScaleStrategy.ExcludePreparingDelete = o.field
			})
			m.eventually(set, settled)
			chosen := m.pods(set)[0]
			m.change(set, func(s *v1beta1.CloneSet) {
				s.Spec.Replicas = ptr.To(int32(2))
				s.Spec.ScaleStrategy.PodsToDelete = []string{chosen.Name}
			})
			m.eventually(set, all(states(inStates{preparingDelete: 1, normal: 2}), counts(3, 2)))
			m.scale(set, 3)
			m.eventually(set, all(states(inStates{preparingDelete: 1, normal: 3}), counts(4, 3)))
			m.patch(&chosen, released)
			m.eventually(set, settled)
		})
	}
}

// A new pod becomes Normal when its hook is complete, and stays Normal.
func TestPreNormal(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(2))
		s.Spec.Lifecycle = &kruise.Lifecycle{
			PreNormal: &kruise.LifecycleHook{FinalizersHandler: []string{"example.com/ready"}},
		}
	})
	m.eventually(set, all(states(inStates{preparingNormal: 1}), counts(1, 0), reason("ProgressDeadlineExceeded")))
	if set.Status.ReadyReplicas != 1 {
		t.Errorf("status %+v", set.Status)
	}
	pod := m.pods(set)[0]
	m.patch(&pod, `{"finalizers":["example.com/ready"]}`)
	m.eventually(set, all(states(inStates{normal: 1}), counts(1, 1), reason("CloneSetAvailable")))
	m.patch(&pod, `{"finalizers":null}`)
	m.stays(set, all(states(inStates{normal: 1}), counts(1, 1)))
}

// A pod that waits for its preNormal hook is updated in place, and still waits for the hook.
func TestPreNormalOfAnUpdatedPod(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		image("web:broken")(s)
		s.Spec.Lifecycle = &kruise.Lifecycle{
			PreNormal: &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/ready": "yes"}},
		}
	})
	m.eventually(set, all(states(inStates{preparingNormal: 1}), counts(1, 0)))
	first := m.pods(set)[0]
	m.change(set, image("web:2"))
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 1 || set.Status.UpdatedReadyReplicas != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	m.stays(set, all(states(inStates{preparingNormal: 1}), counts(1, 0)))
	m.patch(&first, `{"labels":{"example.com/ready":"yes"}}`)
	m.eventually(set, all(settled, states(inStates{normal: 1})))
	if m.pods(set)[0].UID != first.UID {
		t.Error("the pod is another one")
	}
	m.patch(&first, `{"labels":{"example.com/ready":null}}`)
	m.change(set, image("web:3"))
	m.eventually(set, all(settled, states(inStates{normal: 1})))
}

// The containers of a pod that its hook holds stay as they are. A rollback in the meantime restarts nothing.
func TestRollbackWhileHeld(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, withUpdateHook)
	m.eventually(set, settled)
	first := m.pods(set)[0]
	m.change(set, image("web:2"))
	m.eventually(set, states(inStates{preparingUpdate: 1}))
	m.stays(set, all(states(inStates{preparingUpdate: 1}), images(map[string]int{"web:1": 1})))
	m.change(set, image("web:1"))
	m.eventually(set, all(settled, states(inStates{normal: 1})))
	if now := m.pods(set)[0]; now.UID != first.UID || now.Annotations[kruise.InPlaceUpdateStateKey] != "" ||
		now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod was changed: %v, %v", now.Annotations, now.Status.ContainerStatuses)
	}
}

// While scaling, a pod that its hook holds before the update counts as updated, so that missing pods get the current
// revision. A rollout past its deadline stays so while its pods are updated.
func TestPreparingUpdateCountsAsUpdated(t *testing.T) {
	m := newModel(t, cloneset.Options{PreparingUpdateIsUpdated: true, PartitionRollback: true})
	set := m.create("web", 2, func(s *v1beta1.CloneSet) {
		withUpdateHook(s)
		s.Spec.MinReadySeconds = 1
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(4))
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	m.change(set, image("web:2"))
	m.eventually(set, states(inStates{preparingUpdate: 1, normal: 1}))
	var held corev1.Pod
	for _, pod := range m.pods(set) {
		if pod.Labels[kruise.LifecycleStateKey] == string(preparingUpdate) {
			held = pod
			continue
		}
		m.delete(pod)
	}
	m.eventually(set,
		all(counts(2, 1), images(map[string]int{"web:1": 2}), states(inStates{preparingUpdate: 1, normal: 1})))
	m.eventually(set, reason("ProgressDeadlineExceeded"))
	late := condition(set, v1beta1.CloneSetConditionTypeProgressing)
	m.scale(set, 3)
	m.eventually(set,
		all(counts(3, 2), images(map[string]int{"web:1": 3}), states(inStates{preparingUpdate: 1, normal: 2})))
	m.patch(&held, released)
	m.eventually(set, images(map[string]int{"web:1": 2, "web:2": 1}))
	m.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Partition = nil
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	})
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for _, pod := range pods {
			if pod.UID != held.UID && pod.Labels[kruise.LifecycleStateKey] != string(preparingUpdate) {
				return fmt.Errorf("%s is %s", pod.Name, pod.Labels[kruise.LifecycleStateKey])
			}
		}
		return nil
	})
	m.hook(set, `null`)
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 3 || set.Status.UpdatedReplicas != 3 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	if got := condition(set, v1beta1.CloneSetConditionTypeProgressing); got != late ||
		reason("ProgressDeadlineExceeded")(set, nil) != nil {
		t.Errorf("it was %q, and is %q", late, got)
	}
}

// A pod is out of traffic for its grace period before its containers change.
func TestGracePeriod(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 3630}
	})
	m.eventually(set, settled)
	first := m.pods(set)[0]
	m.change(set, image("web:2"))
	waiting := func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if pods[0].Annotations[kruise.InPlaceUpdateGraceKey] == "" || set.Status.ReadyReplicas != 0 {
			return fmt.Errorf("annotations %v, status %+v", pods[0].Annotations, set.Status)
		}
		return all(states(inStates{updating: 1}), images(map[string]int{"web:1": 1}))(set, pods)
	}
	m.eventually(set, waiting)
	m.Advance(10 * time.Second)
	m.stays(set, waiting)
	m.Advance(3630 * time.Second)
	m.eventually(set, all(settled, images(map[string]int{"web:2": 1}), states(inStates{normal: 1})))
	if now := m.pods(set)[0]; now.UID != first.UID || now.Annotations[kruise.InPlaceUpdateGraceKey] != "" {
		t.Errorf("pod %s with annotations %v", now.Name, now.Annotations)
	}
}
