package daemonset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// Another strategy with the same template touches no pod.
func TestStrategyChange(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(unavailable("1"))
	m.eventually(set, settled(3))
	before := uids(m.pods())
	for name, change := range map[string]func(*v1beta1.DaemonSet){
		"in place": inPlace, "budget": unavailable("100%"), "partition": partition("2"), "paused": paused(true),
		"surge": func(s *v1beta1.DaemonSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
				Type: v1beta1.StandardRollingUpdateType, MaxSurge: amount("1"), MaxUnavailable: amount("0"),
			}
		},
		"users delete pods": func(s *v1beta1.DaemonSet) {
			s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteDaemonSetStrategyType}
		},
	} {
		m.Server.Requests()
		m.change(set, change)
		m.Still()
		for _, request := range m.Server.Requests() {
			if strings.Contains(request, " pods/") {
				t.Errorf("%s: %s", name, request)
			}
		}
	}
	if diff := cmp.Diff(before, uids(m.pods())); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

// With a surge of all, each node gets its second pod at once, and keeps the first until the second has been ready for
// minReadySeconds.
func TestSurgeOfAll(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(surge("100%"), func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 10 })
	m.eventually(set, settled(3))
	m.change(set, image("agent:2"))
	m.stays("n1:1 n1:2 n2:1 n2:2 n3:1 n3:2")
	m.Advance(8 * time.Second)
	m.stays("n1:1 n1:2 n2:1 n2:2 n3:1 n3:2")
	m.Advance(2 * time.Second)
	m.stays("n1:2 n2:2 n3:2")
}

// An old pod that becomes unready during a surge gets its new pod whatever the budget.
func TestSurgeBeyondBudget(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(surge("3"), func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 15 })
	m.eventually(set, settled(5))
	m.change(set, image("agent:2"))
	m.stays("n1:1 n2:1 n3:1 n3:2 n4:1 n4:2 n5:1 n5:2")
	m.unready["n1"] = true
	m.edit(m.on("n1"), `{"metadata":{"annotations":{"a":"b"}}}`) // the kubelet looks again
	m.Still()
	if got := m.picture(); strings.Count(got, ":2") != 4 || !strings.Contains(got, "n1:2-") ||
		strings.Contains(got, "n2:2") {
		t.Errorf("pods %q, want a fourth new one, on n1", got)
	}
}

// How many nodes a rollout begins with, of those that there are.
func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		nodes  int
		change func(*v1beta1.DaemonSet)
		want   string
	}{
		{2, unavailable("50%"), "n1:1 n2:1*"},
		{3, unavailable("50%"), "n1:1 n2:1* n3:1*"},
		{5, unavailable("50%"), "n1:1 n2:1 n3:1* n4:1* n5:1*"},
		{3, unavailable("0"), "n1:1 n2:1 n3:1*"}, // a budget of nothing would never end
		{2, surge("100%"), "n1:1 n1:2- n2:1 n2:2-"},
		{3, surge("50%"), "n1:1 n2:1 n2:2- n3:1 n3:2-"},
	} {
		m := newModel(t, c.nodes, daemonset.Options{})
		set := m.create(c.change)
		m.eventually(set, settled(int32(c.nodes)))
		m.Advance(time.Second)
		m.change(set, image("agent:2"))
		m.Reconcile()
		if got := m.picture(); got != c.want {
			t.Errorf("%d nodes: pods %q after a pass, want %q", c.nodes, got, c.want)
		}
	}
}

// Progressive creation goes by the names of nodes, as text, and stops where nodes with new pods are as many as the
// partition leaves.
func TestProgressiveOrder(t *testing.T) {
	m := newModel(t, 0, daemonset.Options{})
	for i := range 10 {
		m.addNode(fmt.Sprint("node-", i))
	}
	set := m.create(progressive, partition("10"))
	m.stays("")
	m.change(set, partition("9"))
	m.becomes(set, "node-0:1")
	m.change(set, partition("5"))
	m.becomes(set, "node-0:1 node-1:1 node-2:1 node-3:1 node-4:1")
	m.addNode("node-10")
	m.addNode("node-11")
	m.becomes(set, "node-0:1 node-1:1 node-10:1 node-11:1 node-2:1 node-3:1 node-4:1")
	for _, gone := range []string{"node-9", "node-8", "node-7", "node-4"} {
		if err := m.Server.Delete(t.Context(), m.node(gone)); err != nil {
			t.Fatal(err)
		}
	}
	m.delete(m.on("node-4")) // as the garbage collector of pods does
	m.becomes(set, "node-0:1 node-1:1 node-10:1 node-11:1 node-2:1 node-3:1")
	m.change(set, partition("20"))
	m.stays("node-0:1 node-1:1 node-10:1 node-11:1 node-2:1 node-3:1")
	m.change(set, partition("0"))
	m.becomes(set, "node-0:1 node-1:1 node-10:1 node-11:1 node-2:1 node-3:1 node-5:1 node-6:1")
}

// Where users delete pods, no node that a selector matches is updated.
func TestOnDeleteSelector(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType
		s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}},
		}
	})
	m.eventually(set, settled(2))
	m.change(set, image("agent:2"))
	m.label("n1", "canary", "true")
	m.stays("n1:1 n2:1")
	m.idle()
}

// Nodes that are not ready and still eligible count: with three of five not ready, whose pods are, a budget of two
// updates two.
func TestNodesNotReady(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(unavailable("2"))
	m.eventually(set, settled(5))
	for _, name := range []string{"n1", "n2", "n3"} {
		m.changeNode(name, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
		})
	}
	m.change(set, image("agent:2"))
	m.Reconcile()
	if n := strings.Count(m.picture(), "*"); n != 2 {
		t.Errorf("pods %q, want two being deleted", m.picture())
	}
	m.becomes(set, "n1:2 n2:2 n3:2 n4:2 n5:2")
}

// A history of none keeps the revisions that pods have, and the present one.
func TestNoHistory(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(inPlace, partition("2"), func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = ptr.To[int32](0) })
	m.eventually(set, settled(2))
	for i := range 3 {
		m.change(set, image(fmt.Sprint("agent:", i+2)))
		m.Still()
		if n := len(m.revisions()); n != 2 {
			t.Errorf("%d revisions after %d changes, want that of the pods and the newest", n, i+1)
		}
	}
	m.change(set, partition("1"))
	m.becomes(set, "n1:1 n2:4")
	if n := len(m.revisions()); n != 2 {
		t.Errorf("%d revisions, want that of each pod", n)
	}
	m.change(set, partition("0"))
	m.becomes(set, "n1:4 n2:4")
	m.idle()
	if n := len(m.revisions()); n != 1 {
		t.Errorf("%d revisions, want that of the pods", n)
	}
}

// Pods of nodes that another template excludes are deleted beside those that the budget allows, and neither waits for
// the other.
func TestExcludedNodes(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	for _, name := range []string{"n1", "n2", "n3"} {
		m.label(name, "pool", "blue")
	}
	set := m.create(unavailable("1"))
	m.eventually(set, settled(5))
	m.change(set, image("agent:2"), func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "blue"}
	})
	m.Reconcile() // what no node is to have goes first
	m.Reconcile()
	if got := m.picture(); got != "n1:1 n2:1 n3:1* n4:1* n5:1*" {
		t.Errorf("pods %q while the first ones terminate", got)
	}
	m.becomes(set, "n1:2 n2:2 n3:2")
}

// One pass creates at most the default burst of 250 pods.
func TestDefaultBurst(t *testing.T) {
	m := newModel(t, 300, daemonset.Options{})
	m.create()
	for _, want := range []int{250, 300} {
		m.Reconcile()
		if n := len(m.pods()); n != want {
			t.Errorf("%d pods after a pass, want %d", n, want)
		}
	}
}
