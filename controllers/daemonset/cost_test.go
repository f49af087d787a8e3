package daemonset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// On 300 nodes, a pod costs one write to create and one to open its gate, and three to update in place. A taint of one node costs the deletion
// of its pod.
func TestCost(t *testing.T) {
	const nodes = 300
	m := newModel(t, nodes, daemonset.Options{})
	m.Server.Requests()
	set := m.create(inPlace, unavailable("50%"))
	m.eventually(set, settled(nodes))
	count := func(what string, ofPods, most int) {
		t.Helper()
		requests := m.Server.Requests()
		pods := len(podbench.About(requests, "POST pods/")) + len(podbench.About(requests, "PATCH pods/")) + len(podbench.About(requests, "DELETE pods/"))
		t.Logf("%s: %d writes of pods, %d of others", what, pods, len(requests)-pods)
		if pods != ofPods || len(requests)-pods > most {
			t.Errorf("%s: %d writes of pods and %d of others, want %d and at most %d", what, pods, len(requests)-pods, ofPods, most)
		}
	}
	count("creation", 2*nodes, 20) // and the first readiness of the gate
	m.change(set, image("agent:2"))
	m.eventually(set, settled(nodes))
	count("update in place", 3*nodes, 30)
	m.taint("n7", "NoExecute")
	m.eventually(set, settled(nodes-1))
	count("taint of one node", 1, 6)
	m.idle()
}
