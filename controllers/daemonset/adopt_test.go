package daemonset_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A node whose orphan is adopted gets no second pod meanwhile.
func TestAdopt(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(3))
	m.rename(m.on("n2"), "agent-x7k2p")
	before := uids(m.pods())
	for _, pod := range m.pods() {
		m.edit(&pod, `{"metadata":{"ownerReferences":null}}`)
	}
	for range 3 {
		m.Reconcile()
		if after := uids(m.pods()); strings.Join(before, " ") != strings.Join(after, " ") {
			t.Fatalf("pods %v became %v", before, after)
		}
	}
	m.eventually(set, settled(3))
	m.idle()
}

// Orphans are adopted whatever the length of the set's name: names of pods have at most 63 characters, and those of the
// set are cut.
func TestAdoptLongNames(t *testing.T) {
	for _, length := range []int{5, 51, 52, 53, 54, 57, 58, 60, 63, 100} {
		name := strings.Repeat("log-agent-", 10)[:length-1] + "x"
		if length == 100 {
			name = name[:51] + ".example.com"
		}
		m := newModel(t, 4, daemonset.Options{})
		set := m.create(func(s *v1beta1.DaemonSet) { s.Name = name })
		m.eventually(set, settled(4))
		first := m.on("n1")
		if want := strings.TrimSuffix(name[:min(length, 52)], ".") + "-"; !strings.HasPrefix(first.Name, want) ||
			len(first.Name) > 63 {
			t.Errorf("set of %d characters: pod %s, want %s...", length, first.Name, want)
		}
		generated := name + "-"
		m.rename(m.on("n2"), generated[:min(len(generated), 58)]+"x7k2p")      // as the API server generates names
		m.rename(m.on("n3"), generated[:min(len(generated), 53)]+"5b79945866") // of an earlier release
		before := uids(m.pods())
		for _, pod := range m.pods() {
			m.edit(&pod, `{"metadata":{"ownerReferences":null}}`)
		}
		m.Still()
		if after := uids(m.pods()); strings.Join(before, " ") != strings.Join(after, " ") {
			t.Errorf("set of %d characters: pods %v became %v", length, before, after)
		}
		for _, pod := range m.pods() {
			if len(pod.OwnerReferences) == 0 {
				t.Errorf("set of %d characters: pod %s is not adopted", length, pod.Name)
			}
		}
	}
}

// rename has a pod exist under another name.
func (m *model) rename(pod *corev1.Pod, name string) {
	m.Helper()
	m.delete(pod)
	m.RunPods()
	renamed := pod.DeepCopy()
	renamed.Name, renamed.ResourceVersion = name, ""
	m.Put(renamed)
}
