package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// world is a set of which a user, nodes and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	faults *podbench.Chance

	set    *v1beta1.DaemonSet
	nodes  int
	surge  int
	budget int
	// catchUp ends the lag of the cache, if it lags.
	catchUp func()

	// mu guards what follows: a pass creates pods in parallel.
	mu sync.Mutex
	// late are creations that the client has given up, and that reach the API server later.
	late []func() error
}

// Whatever happens, a node has one pod, or two with a surge, the budget and the partition hold at each turn, and the
// set settles once the faults end. Creations get lost, lose their answers or are late, and the cache of a new leader
// may show the pods from before the last writes.
func TestRandom(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 60 {
				w.act()
				w.turn()
			}
			w.faults.Of = 0
			w.settle()
		})
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{model: newModel(t, 5, daemonset.Options{}), rand: rand.New(rand.NewPCG(seed, 1)), nodes: 5}
	n := 1 + w.rand.IntN(3)
	changes := []func(*v1beta1.DaemonSet){unavailable(fmt.Sprint(n))}
	switch w.budget = n; seed % 3 {
	case 0:
		changes = append(changes, inPlace)
	case 1:
		changes, w.budget, w.surge = []func(*v1beta1.DaemonSet){surge(fmt.Sprint(n))}, 0, n
	}
	w.set = w.create(changes...)
	w.faults = &podbench.Chance{Seed: seed, Of: 12}
	w.reboot(false)
	return w
}

// reboot starts another process, which has no memory, behind a client that fails at random, once late creations have
// reached the API server: a lease outlasts the requests of the process that has held it.
func (w *world) reboot(lags bool) {
	w.Helper()
	w.see()
	c := client.WithWatch(w.Server)
	if lags {
		lagging, catchUp := w.FrozenPods()
		w.Reconcile()
		c, _ = lagging.(client.WithWatch)
		w.catchUp = catchUp
	}
	w.land()
	w.restart(podbench.Writes(c, func(what string, write func() error) error {
		if !strings.HasPrefix(what, "create/agent-") {
			return w.faults.Do(what, write)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		create := func() error { return w.alone(write) }
		if w.faults.Of > 0 && w.rand.IntN(8) == 0 {
			w.late = append(w.late, create)
			return apierrors.NewTimeoutError("the connection broke", 1)
		}
		return w.faults.Do(what, create)
	}))
}

// alone makes a creation, and looks at what its node has beside the pod.
func (w *world) alone(create func() error) error {
	before := map[string]bool{}
	for _, pod := range w.pods() {
		before[string(pod.UID)] = true
	}
	if err := create(); err != nil {
		return err
	}
	pods := w.pods()
	for i := range pods {
		if fresh := &pods[i]; !before[string(fresh.UID)] {
			w.checkCreated(fresh, pods)
		}
	}
	return nil
}

func (w *world) checkCreated(fresh *corev1.Pod, pods []corev1.Pod) {
	live := 0
	for i := range pods {
		pod := &pods[i]
		if pod.UID == fresh.UID || eligible.NodeOf(pod) != eligible.NodeOf(fresh) {
			continue
		}
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			live++
		}
		if w.surge == 0 {
			w.Errorf("%s is created beside %s on %s: %s", fresh.Name, pod.Name, eligible.NodeOf(pod), w.picture())
		}
	}
	if live > 1 {
		w.Errorf("%s is created beside %d pods on %s: %s", fresh.Name, live, eligible.NodeOf(fresh), w.picture())
	}
}

// land has late creations reach the API server.
func (w *world) land() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, create := range w.late {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Errorf("a late creation: %v", err)
		}
	}
	w.late = nil
}

// act is what the user, a node or a fault does.
func (w *world) act() {
	w.Helper()
	pods := w.pods()
	node := fmt.Sprint("n", 1+w.rand.IntN(w.nodes))
	switch w.rand.IntN(16) {
	case 0, 1:
		w.change(w.set, image(fmt.Sprint("agent:", 1+w.rand.IntN(3))))
	case 2:
		w.change(w.set, partition(fmt.Sprint(w.rand.IntN(4))))
	case 3:
		w.nodes++
		w.addNode(fmt.Sprint("n", w.nodes))
	case 4:
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
		w.taint(node, effects[:w.rand.IntN(3)]...)
	case 5:
		if len(pods) > 0 {
			w.delete(&pods[w.rand.IntN(len(pods))])
		}
	case 6:
		if len(pods) > 0 {
			w.fail(&pods[w.rand.IntN(len(pods))])
		}
	case 7:
		w.unready[node] = !w.unready[node]
	case 8, 10:
		w.reboot(w.catchUp == nil && w.rand.IntN(2) == 0)
	case 9:
		w.Advance(time.Minute)
	case 11, 12:
		w.see()
	}
}

// see ends the lag of the cache.
func (w *world) see() {
	if w.catchUp != nil {
		w.catchUp()
		w.catchUp = nil
	}
}

// turn is a pass, what must hold after it, and a step of the nodes.
func (w *world) turn() {
	w.Helper()
	w.land()
	w.Look(w.set)
	before := w.pods()
	w.Server.Requests()
	w.Reconcile()
	w.check(before, w.pods())
	w.RunPods()
	w.Advance(time.Second)
}

// settle expects a pod of the right revision on each node, without another fault.
func (w *world) settle() {
	w.Helper()
	w.unready = map[string]bool{}
	w.Kubelet.Unready = nil
	w.land()
	w.see()
	for i := range w.nodes {
		w.taint(fmt.Sprint("n", i+1))
	}
	w.change(w.set, partition("0"), image("agent:9"))
	for range 300 {
		w.Look(w.set)
		if settled(int32(w.nodes))(w.set) == nil && len(w.pods()) == w.nodes {
			w.idle()
			return
		}
		w.turn()
		w.Advance(10 * time.Second)
	}
	w.Errorf("not settled: pods %q, status %+v", w.picture(), w.set.Status)
}

// found is what a node has.
type found struct{ active, serving, old int }

func (*world) find(pods []corev1.Pod, image string) map[string]found {
	all := map[string]found{}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		f := all[eligible.NodeOf(pod)]
		f.active++
		if isReady(pod) {
			f.serving++
		}
		if pod.Spec.Containers[0].Image != image {
			f.old++
		}
		all[eligible.NodeOf(pod)] = f
	}
	return all
}

// check compares the pods before and after a pass.
func (w *world) check(before, after []corev1.Pod) {
	w.Helper()
	image := w.set.Spec.Template.Spec.Containers[0].Image
	was, is := w.find(before, image), w.find(after, image)
	rule := eligible.Compile(&w.set.Spec.Template.Spec, eligible.Options{Daemon: true})
	unavailable, disrupted, fresh, old, oldBefore := 0, 0, 0, 0, 0
	for i := range w.nodes {
		name := fmt.Sprint("n", i+1)
		verdict := rule.Check(w.node(name))
		if most := 1 + min(w.surge, 1); is[name].active > max(most, was[name].active) {
			w.Errorf("%d pods on %s, there were %d; requests %v", is[name].active, name, was[name].active, w.Server.Requests())
		}
		if !verdict.Stay || w.catchUp != nil { // an older view does not show how many pods serve
			continue
		}
		if verdict.Run && was[name].serving == 0 {
			unavailable++
		}
		if was[name].serving > 0 && is[name].serving == 0 {
			disrupted++
		}
		if was[name].serving > 0 && was[name].active < 2 && is[name].active > 1 {
			fresh++
		}
		if verdict.Run && was[name].old == was[name].active { // else a new pod replaces the old one already
			oldBefore += min(was[name].old, 1)
			old += min(is[name].old, 1)
		}
	}
	if w.surge == 0 && disrupted > max(0, w.budget-unavailable) {
		w.Errorf("%d pods are disrupted beside %d unavailable ones, %d may be; requests %v",
			disrupted, unavailable, w.budget, w.Server.Requests())
	}
	if w.surge > 0 && (disrupted > 0 || fresh > w.surge) {
		w.Errorf("%d nodes are disrupted, and %d have a second pod, %d may have; requests %v",
			disrupted, fresh, w.surge, w.Server.Requests())
	}
	if keep := w.kept(); old < oldBefore && old < min(keep, oldBefore) && !strings.Contains(fmt.Sprint(w.picture()), "!") {
		w.Errorf("%d nodes are old, there were %d, and the partition keeps %d; requests %v",
			old, oldBefore, keep, w.Server.Requests())
	}
}

func (w *world) kept() int {
	if u := w.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return u.Partition.IntValue()
	}
	return 0
}
