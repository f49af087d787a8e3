package daemonset_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/requests"
)

// On 300 nodes, a pod costs one write to create and one to open its gate, and three to update in place. The taint of
// one node costs the deletion of its pod. Where events of pods arrive together, a pass looks at all of them: a turn of
// the model is one pass, and the kubelets have their turn after it. TestManyNodes has passes as events arrive one by
// one.
func TestCost(t *testing.T) {
	nodes, passes := 300, 0
	m := newModel(t, nodes, daemonset.Options{Explain: func(context.Context, types.NamespacedName, []note.Note) {
		passes++
	}})
	m.Server.Requests()
	set := m.create(inPlace, unavailable("50%"))
	m.eventually(set, settled(int32(nodes)))
	count := func(what string, ofPods, mostOthers, mostPasses int) {
		t.Helper()
		asked := m.Server.Requests()
		pods := len(requests.About(asked, "POST pods/")) + len(requests.About(asked, "PATCH pods/")) +
			len(requests.About(asked, "DELETE pods/"))
		t.Logf("%s: %d writes of pods, %d of others, %d passes", what, pods, len(asked)-pods, passes)
		if pods != ofPods || len(asked)-pods > mostOthers || passes > mostPasses {
			t.Errorf("%s: %d writes of pods, %d of others and %d passes, want %d, at most %d, and at most %d",
				what, pods, len(asked)-pods, passes, ofPods, mostOthers, mostPasses)
		}
		passes = 0
	}
	count("creation", 2*nodes, 20, 20) // and the first readiness of the gate
	m.change(set, image("agent:2"))
	m.eventually(set, settled(int32(nodes)))
	count("update in place", 3*nodes, 30, 30)
	m.taint("n7", "NoExecute")
	m.eventually(set, settled(int32(nodes)-1))
	count("taint of one node", 1, 6, 4)
	m.idle()
}
