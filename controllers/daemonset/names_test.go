package daemonset_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/podbench"
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
	m.delete(m.on("n1"))
	m.delete(m.on("n2"))
	m.RunPods()
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, UID: "foreign"}, Spec: set.Spec.Template.Spec,
	}
	foreign.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job", Controller: ptr.To(true),
	}}
	var once sync.Once
	m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
		if name, isPod := strings.CutPrefix(what, "create/agent-"); isPod {
			once.Do(func() { // the name is taken a moment before
				foreign.Name = "agent-" + name
				m.Put(foreign)
			})
		}
		return write()
	}))
	m.Reconcile()
	if got := m.picture(); got != "n1:1-" && got != "n2:1-" {
		t.Errorf("pods %q after a pass: the name of one pod is taken, and the other node gets its pod", got)
	}
	m.becomes(set, "n1:1 n2:1")
	m.idle()
}

// A pod that replaces another one has a name of its own: leases, series of metrics and scripts that wait for a name to
// vanish tell the two apart. What ends the pod before does not matter.
func TestReplacementsHaveNewNames(t *testing.T) {
	for name, replace := range map[string]func(*model, *v1beta1.DaemonSet){
		"it fails":      func(m *model, _ *v1beta1.DaemonSet) { m.fail(m.on("n1")) },
		"it is evicted": func(m *model, _ *v1beta1.DaemonSet) { m.delete(m.on("n1")) },
		"it is updated": func(m *model, set *v1beta1.DaemonSet) {
			m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Command = []string{m.Clock.String()} })
		},
		"the manager restarts before": func(m *model, _ *v1beta1.DaemonSet) {
			m.restart(m.Server)
			m.Reconcile()
			m.delete(m.on("n1"))
		},
		"its node registers again": func(m *model, set *v1beta1.DaemonSet) {
			m.delete(m.node("n1"))
			m.delete(m.on("n1"))
			m.becomes(set, "n2:1")
			m.restart(m.Server)
			m.addNode("n1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 2, daemonset.Options{})
			set := m.create()
			m.becomes(set, "n1:1 n2:1")
			names := map[string]bool{m.on("n1").Name: true}
			for range 3 {
				m.Advance(time.Second)
				replace(m, set)
				m.becomes(set, "n1:1 n2:1")
				m.eventually(set, settled(2))
				if is := m.on("n1").Name; names[is] {
					t.Errorf("%s has the name of a pod that it replaces", is)
				} else {
					names[is] = true
				}
			}
		})
	}
}
