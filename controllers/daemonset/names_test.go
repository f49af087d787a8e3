package daemonset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A pod that the set has released keeps its name, and keeps no node without a pod.
func TestReleasedName(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(2))
	m.edit(m.on("n1"), `{"metadata":{"labels":{"app":null}}}`)
	m.becomes(set, "n1:1 n2:1")
	m.delete(m.on("n1"))
	m.delete(m.on("n2"))
	m.becomes(set, "n1:1 n2:1")
	if events := m.Server.Events(set, "FailedCreate"); len(events) > 0 {
		t.Errorf("events %v", events)
	}
}

// A pod of another owner that has the name of a pod keeps neither its node nor the others without a pod.
func TestForeignName(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(2))
	first, second := m.on("n1"), m.on("n2")
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name, UID: "foreign"}, Spec: first.Spec}
	foreign.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job", Controller: ptr.To(true)}}
	m.delete(first)
	m.delete(second)
	m.Server.RunPods(m.Kubelet)
	m.Put(foreign)
	m.Reconcile()
	if got := m.picture(); got != "n2:1-" {
		t.Errorf("pods %q after a pass: the name of one pod is taken, and the other node gets its pod", got)
	}
	m.becomes(set, "n1:1 n2:1")
	m.idle()
}
