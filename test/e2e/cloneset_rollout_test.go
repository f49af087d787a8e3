//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// A partition holds back, a pause holds still, and both let the number of pods change.
func (m *deployed) testPartitionAndPause(t *testing.T) {
	s := m.newSet(t, "canary")
	s.create(t, 3, func(spec *v1beta1.CloneSetSpec) {
		spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("60%"))
	})
	before := s.pods(t)
	s.roll(t)
	updated := func(want int) func(look) error {
		return func(l look) error {
			now, replicas := l.set.Status, int(*l.set.Spec.Replicas)
			if now.ObservedGeneration != l.set.Generation || int(now.UpdatedReadyReplicas) != want ||
				serving(l.pods) != replicas || s.running(l.pods, "new") != want {
				return fmt.Errorf("%d of %d pods run the new image, %d are ready, status %+v",
					s.running(l.pods, "new"), len(l.pods), serving(l.pods), now)
			}
			return nil
		}
	}
	s.waitFor(t, "one updated pod", updated(1))

	s.change(t, func(spec *v1beta1.CloneSetSpec) {
		spec.UpdateStrategy.RollingUpdate.Paused = true
		spec.UpdateStrategy.RollingUpdate.Partition = nil
		spec.Replicas = ptr.To(int32(4))
	})
	// The new pod is made in a later pass than an update would be begun in.
	s.waitFor(t, "a fourth pod, which is of the new revision", updated(2))
	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.UpdateStrategy.RollingUpdate.Paused = false })
	s.waitFor(t, "all updated pods", updated(4))
	after := s.pods(t)
	sameButFor(t, "main", before, after)
	for name := range before {
		delete(after, name)
	}
	for name, pod := range after {
		if err := s.one(pod, "new", 0); err != nil {
			t.Errorf("the pod made during the pause, %s: %v", name, err)
		}
	}
}

// With a surge and without a budget, no pod goes before another has come.
func (m *deployed) testSurge(t *testing.T) {
	s := m.newSet(t, "surge")
	s.create(t, 2, func(spec *v1beta1.CloneSetSpec) {
		spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: v1beta1.RecreateCloneSetPodUpdateStrategyType,
			MaxUnavailable:  ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
		}
	})
	before := s.pods(t)
	s.roll(t)
	least, most := 2, 2
	s.waitFor(t, "new pods", func(l look) error {
		least, most = min(least, serving(l.pods)), max(most, len(l.pods))
		return s.all("new", 0)(l)
	})
	if least < 2 || most != 3 {
		t.Errorf("of 2 pods at least %d were ready, and there were up to %d, want 2 and 3", least, most)
	}
	for name := range s.pods(t) {
		if before[name] != nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// Hooks hold a pod before its update, after it, and before its deletion.
func (m *deployed) testHooks(t *testing.T) {
	const updating, deleting = "example.com/in-traffic", "example.com/has-data"
	s := m.newSet(t, "held")
	s.create(t, 2, func(spec *v1beta1.CloneSetSpec) {
		spec.Lifecycle = &kruise.Lifecycle{
			InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{updating: "yes"}},
			PreDelete:     &kruise.LifecycleHook{LabelsHandler: map[string]string{deleting: "yes"}},
		}
		spec.Template.Labels[updating], spec.Template.Labels[deleting] = "yes", "yes"
	})
	before := s.pods(t)
	s.roll(t)
	for range 2 {
		held := s.held(t, kruise.LifecycleStatePreparingUpdate)
		if !runs(statuses(held)["main"], s.images["old"]) || serving(s.pods(t)) != 2 {
			t.Errorf("%s is held before its update, and runs %s or serves no more", held.Name, statuses(held)["main"].ImageID)
		}
		s.label(t, held.Name, updating, nil)
		held = s.held(t, kruise.LifecycleStateUpdated)
		if !runs(statuses(held)["main"], s.images["new"]) {
			t.Errorf("%s is held after its update, and runs %s", held.Name, statuses(held)["main"].ImageID)
		}
		s.label(t, held.Name, updating, ptr.To("yes"))
	}
	s.waitFor(t, "all updated pods", s.all("new", 1))
	sameButFor(t, "main", before, s.pods(t))

	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.Replicas = ptr.To(int32(1)) })
	held := s.held(t, kruise.LifecycleStatePreparingDelete)
	if serving(s.pods(t)) != 2 {
		t.Errorf("%s is held before its deletion, and does not serve any more", held.Name)
	}
	s.label(t, held.Name, deleting, nil)
	s.waitFor(t, "one pod", s.all("new", 1))
	if s.pods(t)[held.Name] != nil {
		t.Errorf("%s is still there", held.Name)
	}
}

// held waits for the one pod that a hook holds.
func (s *theSet) held(t *testing.T, state kruise.LifecycleState) *corev1.Pod {
	t.Helper()
	var held *corev1.Pod
	s.waitFor(t, "a pod in state "+string(state), func(l look) error {
		names := in(l.pods, state)
		if len(names) != 1 {
			return fmt.Errorf("those are %q", names)
		}
		held = l.pods[names[0]]
		return nil
	})
	return held
}

// label sets a label of a pod, or takes it off.
func (s *theSet) label(t *testing.T, pod, key string, value *string) {
	t.Helper()
	text := "null"
	if value != nil {
		text = fmt.Sprintf("%q", *value)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, text))
	if err := s.Client.Patch(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}}, patch); err != nil {
		t.Fatal(err)
	}
}

// Pods named by the user go first, in place of others.
func (m *deployed) testPodsToDelete(t *testing.T) {
	s := m.newSet(t, "named")
	s.create(t, 3, nil)
	before := s.pods(t)
	names := slices.Sorted(maps.Keys(before))
	s.change(t, func(spec *v1beta1.CloneSetSpec) {
		spec.Replicas = ptr.To(int32(2))
		spec.ScaleStrategy.PodsToDelete = []string{names[1]}
	})
	s.waitFor(t, "two pods, and no name any more", func(l look) error {
		if left := l.set.Spec.ScaleStrategy.PodsToDelete; len(left) > 0 {
			return fmt.Errorf("still to delete: %v", left)
		}
		return s.all("old", 0)(l)
	})
	after := s.pods(t)
	if after[names[0]] == nil || after[names[1]] != nil || after[names[2]] == nil {
		t.Errorf("of %v there are %v", names, slices.Sorted(maps.Keys(after)))
	}
}
