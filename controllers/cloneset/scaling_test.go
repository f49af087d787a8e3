package cloneset_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// Creation stops while too many pods are unavailable. An event reports each limit, and none follows while nothing
// changes.
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

// Missing pods get the current revision up to the partition and the update revision beyond, in the order of their
// names.
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
	m.Still()
	want := map[string]string{
		"web-aa": "web:1", "web-ab": "web:1", "web-ac": "web:1", "web-ad": "web:2", "web-ae": "web:2",
	}
	for _, pod := range m.pods(set) {
		id := pod.Labels[kruise.CloneSetInstanceIDKey]
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
