package persistentpodstate_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is what happens to a StatefulSet and its nodes, the writes that follow, and what is recorded then.
func TestStories(t *testing.T) {
	auto := map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: zone,
		v1beta1.AnnotationPreferredPersistentTopology: host,
	}
	with := func(key, value string) map[string]string {
		m := maps.Clone(auto)
		m[key] = value
		return m
	}
	nodes := func(m *model) {
		m.node("n1", "a")
		m.node("n2", "a")
		m.node("n3", "b")
	}
	node := func(name string) client.Object { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	type step struct {
		what string
		do   func(*model)
	}
	for name, story := range map[string][]step{
		"return": {
			{"three pods become ready", func(m *model) {
				nodes(m)
				m.set(3, nil)
				m.state()
				m.run("db-0", "n3")
				m.run("db-1", "n2")
				m.run("db-2", "n1")
			}},
			{"a pod is recreated and returns to its node", func(m *model) { m.lose("db-1"); m.run("db-1", "n1") }},
			{
				"a node is drained: the pod finds another node of its zone",
				func(m *model) { m.remove(node("n2")); m.lose("db-1"); m.run("db-1", "n3") },
			},
			{"scaled to one: the records of pods that run stay", func(m *model) { m.set(1, nil); m.lose("db-2") }},
			{"the last pod leaves", func(m *model) { m.lose("db-1") }},
			{"the StatefulSet is deleted", func(m *model) { m.remove(m.workload()) }},
		},
		"generated": {
			{"a StatefulSet asks", func(m *model) { nodes(m); m.set(1, auto) }},
			{"its pod becomes ready", func(m *model) { m.run("db-0", "n2") }},
			{"the required key changes", func(m *model) { m.set(1, with(v1beta1.AnnotationRequiredPersistentTopology, host)) }},
			{
				"the keys of annotations change",
				func(m *model) { m.set(1, with(v1beta1.AnnotationPersistentPodAnnotations, "address")) },
			},
			{"it no longer asks", func(m *model) { m.set(1, nil) }},
		},
		"occupied": {
			{"a user has made one", func(m *model) {
				nodes(m)
				m.state()
				m.set(1, with(v1beta1.AnnotationRequiredPersistentTopology, host))
			}},
			{
				"the StatefulSet no longer asks",
				func(m *model) { m.set(1, with(v1beta1.AnnotationAutoGeneratePersistentPodState, "false")) },
			},
		},
		"a-zone-is-gone": {
			{"a pod runs in a zone of one node", func(m *model) { nodes(m); m.set(1, nil); m.state(); m.run("db-0", "n3") }},
			{"the node is gone, and the pod waits", func(m *model) { m.remove(node("n3")); m.lose("db-0"); m.run("db-0") }},
			{"a node of the zone comes", func(m *model) { m.node("n4", "b"); m.lose("db-0"); m.run("db-0") }},
		},
		"released": {
			{"a pod runs in a zone of one node, and is released after ten minutes", func(m *model) {
				nodes(m)
				m.set(1, nil)
				m.state(func(s *podstate.State) {
					s.Annotations = map[string]string{v1beta1.AnnotationReleaseMissingTopologyAfter: "10m"}
				})
				m.run("db-0", "n3")
			}},
			{"the node is gone, and the pod waits", func(m *model) { m.remove(node("n3")); m.lose("db-0"); m.run("db-0") }},
			{"ten minutes later the pod is deleted", func(m *model) { m.Advance(10 * time.Minute) }},
			{"the StatefulSet creates the pod again", func(m *model) { m.run("db-0", "n1") }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			told := &strings.Builder{}
			for _, s := range story {
				s.do(m)
				m.Server.Requests()
				m.settle(2 * time.Second)
				fmt.Fprintf(told, "# %s\n", s.what)
				for _, w := range m.writes() {
					fmt.Fprintf(told, "    %s\n", w)
				}
				fmt.Fprintf(told, "%s\n\n", m.picture())
				m.Advance(time.Second)
			}
			storytest.Compare(t, name, told.String())
		})
	}
}
