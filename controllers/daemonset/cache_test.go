package daemonset_test

import (
	"slices"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A new leader whose list of sets is older than its list of pods keeps the pods on nodes that the user has added since.
func TestNewLeaderWithOlderSet(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	m.label("n1", "disk", "ssd")
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	m.becomes(set, "n1:1")
	if reads := m.Live.Reads(); !slices.Equal(reads, []string{"list PodList"}) {
		t.Errorf("a pod is created after the reads %v", reads)
	}
	earlier := m.Server.Snapshot()
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = nil })
	m.becomes(set, "n1:1 n2:1")
	before := m.Pods()
	m.Live.Reads()
	cache := m.Behind(earlier)
	m.restart(cache) // another replica leads
	for range 5 {
		m.Reconcile()
		m.RunPods()
	}
	cache.Thaw()
	m.becomes(set, "n1:1 n2:1")
	for i, pod := range m.Pods() {
		if pod.UID != before[i].UID {
			t.Errorf("pod %s is not that of before", pod.Name)
		}
	}
	if reads := m.Live.Reads(); !slices.Contains(reads, "get DaemonSet metadata") {
		t.Errorf("reads past the cache: %v", reads)
	}
}
