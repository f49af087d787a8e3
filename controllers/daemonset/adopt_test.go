package daemonset_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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

// rename has a pod exist under another name.
func (m *model) rename(pod *corev1.Pod, name string) {
	m.Helper()
	m.delete(pod)
	m.Server.RunPods(m.Kubelet)
	renamed := pod.DeepCopy()
	renamed.Name, renamed.ResourceVersion = name, ""
	m.Put(renamed)
}
