package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// Creation stops while too many pods are unavailable. An event reports each limit, and none follows while nothing changes.
func TestScaleOutIsLimited(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 5, func(s *v1beta1.CloneSet) {
		image("web:broken")(s)
		s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	})
	m.eventually(set, all(counts(2, 0), images(map[string]int{"web:broken": 2})))
	m.stays(set, all(counts(2, 0), m.emitted("ScaleUpLimited", 2)))
	m.change(set, func(s *v1beta1.CloneSet) { s.Labels = map[string]string{"touched": "true"} })
	m.stays(set, all(counts(2, 0), m.emitted("ScaleUpLimited", 2)))
}

// A set of three pods, of which some are not ready, is scaled to six while two pods may be unavailable.
func TestScaleOutWithUnreadyPods(t *testing.T) {
	for name, c := range map[string]struct {
		why           string
		unready, want int
	}{
		"one is not ready":  {"one more pod is created", 1, 4},
		"two are not ready": {"no pod is created", 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 3, func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromInt32(3))}
				s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
			})
			m.eventually(set, settled)
			for _, pod := range m.pods(set)[:c.unready] {
				m.patch(&pod, fmt.Sprintf(`{"annotations":{%q:""}}`, unready))
			}
			m.eventually(set, counts(3, int32(3-c.unready)))
			m.change(set, func(s *v1beta1.CloneSet) {
				image("web:broken")(s)
				s.Spec.Replicas = ptr.To(int32(6))
			})
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				return counts(int32(c.want), int32(3-c.unready))(set, pods)
			})
			m.stays(set, func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
				if len(pods) != c.want {
					return fmt.Errorf("%s: %d pods, want %d", c.why, len(pods), c.want)
				}
				return nil
			})
		})
	}
}

// Ready pods that are not available yet are not deleted beyond the budget.
func TestScaleInWaitsForAvailability(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 5, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 9999 })
	m.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if set.Status.ReadyReplicas != 5 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	m.scale(set, 3)
	m.stays(set, counts(5, 0))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 0 })
	m.eventually(set, settled)
}

// While a hook holds the pod that is chosen for deletion, no other pod is deleted in its place.
func TestScaleInChosenFirst(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 5, withDeleteHook)
	m.eventually(set, settled)
	pods := m.pods(set)
	for i := range pods[1:] {
		m.patch(&pods[1+i], `{"labels":{"example.com/hook":null}}`)
	}
	m.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = ptr.To(int32(3))
		s.Spec.ScaleStrategy.PodsToDelete = []string{pods[0].Name}
	})
	m.eventually(set, states(inStates{preparingDelete: 1, normal: 4}))
	m.stays(set, counts(5, 4))
	m.patch(&pods[0], `{"labels":{"example.com/hook":null}}`)
	m.eventually(set, settled)
	if slices.Contains(names(m.pods(set)), pods[0].Name) {
		t.Errorf("%s was chosen, and still exists", pods[0].Name)
	}
}

// Missing pods get the current revision up to the partition and the update revision beyond, in the order of their names.
func TestScaleOutOfTwoRevisions(t *testing.T) {
	m := newModel(t, cloneset.Options{NewID: numbered()})
	set := m.create("web", 2, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(3))
	})
	m.eventually(set, settled)
	m.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		s.Spec.Replicas = ptr.To(int32(5))
	})
	m.eventually(set, counts(5, 5))
	m.still()
	want := map[string]string{"web-aa": "web:1", "web-ab": "web:1", "web-ac": "web:1", "web-ad": "web:2", "web-ae": "web:2"}
	for _, pod := range m.pods(set) {
		id := pod.Labels[pub.CloneSetInstanceIDKey]
		if pod.Spec.Containers[0].Image != want[pod.Name] || pod.Name != "web-"+id {
			t.Errorf("%s (id %s) runs %s, want %s", pod.Name, id, pod.Spec.Containers[0].Image, want[pod.Name])
		}
		if v := pod.Spec.Volumes; !slices.ContainsFunc(v, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-web-"+id
		}) {
			t.Errorf("%s has volumes %v", pod.Name, v)
		}
	}
	if got := claimNames(m.claims()); len(got) != 5 {
		t.Errorf("claims %v", got)
	}
}

// A paused set is scaled and not updated.
func TestPaused(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 3, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Paused = true
	})
	m.eventually(set, settled)
	m.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		s.Spec.Replicas = ptr.To(int32(4))
	})
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if len(pods) != 4 || running(pods, "web:1")+running(pods, "web:2") != 4 || set.Status.AvailableReplicas != 4 {
			return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
		}
		return nil
	})
	m.still()
	if n := running(m.pods(set), "web:1"); n != 3 {
		t.Errorf("%d pods are not updated, want 3", n)
	}
}

// OnDelete updates only the pods that are deleted.
func TestOnDelete(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 3, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
	})
	m.eventually(set, settled)
	m.change(set, image("web:2"))
	m.still()
	pods := m.pods(set)
	if n := running(pods, "web:1"); n != 3 {
		t.Fatalf("%d pods are not updated, want 3", n)
	}
	m.delete(pods[0])
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 1 || running(pods, "web:1") != 2 {
			return fmt.Errorf("%d of %d pods are new", running(pods, "web:2"), len(pods))
		}
		return nil
	})
}

// With OnDelete deleted pods are replaced by updated ones, and scaling in deletes old pods first.
func TestOnDeleteThroughScaling(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 5, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
		s.Spec.MinReadySeconds = 1
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	m.change(set, image("web:2"))
	m.stays(set, all(counts(5, 5), images(map[string]int{"web:1": 5}), reason("CloneSetUpdated")))
	if set.Status.UpdatedReplicas != 0 {
		t.Errorf("status %+v", set.Status)
	}
	m.delete(m.pods(set)[:2]...)
	m.eventually(set, all(counts(5, 5), images(map[string]int{"web:1": 3, "web:2": 2})))
	m.scale(set, 3)
	m.eventually(set, all(counts(3, 3), images(map[string]int{"web:1": 1, "web:2": 2})))
	m.scale(set, 6)
	m.eventually(set, all(counts(6, 6), images(map[string]int{"web:1": 1, "web:2": 5})))
	m.scale(set, 5)
	m.eventually(set, all(counts(5, 5), images(map[string]int{"web:2": 5}), reason("CloneSetAvailable")))
}

// A set with OnDelete deletes a chosen pod although a fifth of its pods is less than one.
func TestOnDeleteOfAChosenPod(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 2, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType })
	m.eventually(set, settled)
	chosen := m.pods(set)[0]
	m.patch(&chosen, fmt.Sprintf(`{"labels":{%q:""}}`, pub.SpecifiedDeleteKey))
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if uids(pods)[string(chosen.UID)] {
			return fmt.Errorf("%s still exists", chosen.Name)
		}
		return settled(set, pods)
	})
}
