//go:build envtest

package daemonset_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/standin"
)

var manyNodes = flag.Int("nodes", 100, "how many nodes TestManyNodes has")

// On many nodes, a set is reconciled in proportion to the pods that change, and the label of a node reconciles the sets
// that look at it. With -nodes 1000 it takes a minute or two.
func TestManyNodes(t *testing.T) {
	const others, sets = 20, 21
	// A pass at most for each event: a pod is created, bound, changed by the reconciler and by its kubelet; the status of
	// a set changes.
	const events = 6
	nodes := *manyNodes
	m := newMany(t, nodes, others)
	pods := nodes + others
	m.expect("creation",
		bounds{passes: events * (pods + sets), least: sets, pods: 2 * pods, others: events * (pods + sets)}, func() {
			m.create("agent", func(set *v1beta1.DaemonSet) { inPlace(set); unavailable("50%")(set) })
			for i := range others {
				m.create(other(i), inPlace, selecting(fmt.Sprint("r", i)))
			}
		}, func() error {
			for i := range others {
				if err := m.settled(other(i), 1); err != nil {
					return err
				}
			}
			return m.settled("agent", int32(nodes))
		})
	m.expect("rollout in place",
		bounds{passes: events * (nodes + 1), least: 1, pods: 3 * nodes, others: events * (nodes + 1)}, func() {
			m.change("agent", image("agent:2"))
		}, func() error { return m.settled("agent", int32(nodes)) })

	last := fmt.Sprint("n", nodes)
	m.expect("a label that no set looks at", bounds{}, func() { m.label(last, "color", "blue") }, func() error {
		return nil
	})
	passes := m.expect("a label that one set looks at", bounds{passes: 2 * events, least: 1, pods: 2, others: 2 * events},
		func() {
			m.label(last, "role", "r3")
		}, func() error { return m.settled(other(3), 2) })
	delete(passes, other(3))
	if diff := cmp.Diff(map[string]int{}, passes); diff != "" {
		t.Errorf("a label that one set looks at: passes of other sets (-want +got):\n%s", diff)
	}
}

// many is a server with many nodes, and the passes of a reconciler there.
type many struct {
	*server

	mu     sync.Mutex
	passes map[string]int
}

// newMany has nodes n1, n2 and so on. The first ones have a role each: r0, r1 and so on.
func newMany(t *testing.T, nodes, roles int) *many {
	t.Helper()
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_daemonsets.yaml"},
	})
	m := &many{server: &server{Bench: podbench.On(t, c, scheme)}, passes: map[string]int{}}
	m.Patience = time.Minute + time.Duration(nodes)*time.Second/4
	var makers sync.WaitGroup
	names := make(chan int)
	for range 8 {
		makers.Add(1)
		go func() {
			defer makers.Done()

			for i := range names {
				labels := map[string]string{}
				if i < roles {
					labels["role"] = fmt.Sprint("r", i)
				}
				if err := m.makeNode(t.Context(), fmt.Sprint("n", i+1), labels); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for i := range nodes {
		names <- i
	}
	close(names)
	makers.Wait()
	m.Beside(func(mgr ctrl.Manager) error {
		return (&standin.Kubelet{Client: mgr.GetClient(), Namespace: m.Namespace, Node: "n1"}).SetupWithManager(mgr)
	})
	m.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := daemonset.New(c, daemonset.Options{SkipQuiet: true, Explain: m.count})
		if err != nil {
			return err
		}
		return r.SetupWithManager(t.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
	return m
}

func (m *many) count(_ context.Context, set types.NamespacedName, _ []note.Note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes[set.Name]++
}

// bounds are how many passes something takes, and how many writes of pods and of other objects.
type bounds struct{ passes, least, pods, others int }

// expect makes a change, waits for its end, and counts what it took. It returns the passes of each set.
func (m *many) expect(what string, b bounds, change func(), done func() error) map[string]int {
	m.Helper()
	m.Still()
	m.Asked()
	m.mu.Lock()
	clear(m.passes)
	m.mu.Unlock()
	began := time.Now()
	change()
	m.Until(done)
	m.Still()
	m.mu.Lock()
	passes := maps.Clone(m.passes)
	m.mu.Unlock()
	sum := 0
	for _, n := range passes {
		sum += n
	}
	pods, others := 0, 0
	for _, request := range m.Asked() {
		switch {
		case len(requests.About([]string{request}, "GET ")) > 0, len(requests.About([]string{request}, "events")) > 0:
		case len(requests.About([]string{request}, "pods")) > 0:
			pods++
		default:
			others++
		}
	}
	m.Logf("%s: %d passes, %d writes of pods and %d of other objects, in %s",
		what, sum, pods, others, time.Since(began).Round(time.Second/10))
	if sum < b.least || sum > b.passes || pods != b.pods || others > b.others {
		m.Errorf("%s: %d passes, %d writes of pods and %d of other objects; want %+v", what, sum, pods, others, b)
	}
	return passes
}

func other(i int) string { return fmt.Sprint("other-", i) }

// selecting has a set run on the nodes of a role.
func selecting(role string) func(*v1beta1.DaemonSet) {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.NodeSelector = map[string]string{"role": role} }
}

func (m *many) create(name string, changes ...func(*v1beta1.DaemonSet)) {
	m.Helper()
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	set.Spec.Template.Labels = map[string]string{"app": name}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "agent:1"}}
	for _, change := range changes {
		change(set)
	}
	if err := m.Client.Create(m.Context(), set); err != nil {
		m.Fatal(err)
	}
}

func (m *many) change(name string, changes ...func(*v1beta1.DaemonSet)) {
	m.Helper()
	m.server.change(m.T, &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}}, changes...)
}

func (m *many) label(node, key, value string) {
	m.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
	if err := m.Client.Patch(m.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch); err != nil {
		m.Error(err)
	}
}

func (m *many) settled(name string, pods int32) error {
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}}
	return errors.Join(m.Look(set), settled(pods)(set))
}
