package cloneset_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is one CloneSet with its reconciler, a scheduler, nodes, an owner of hooks and a user. A step is a second.
// Chance depends on the seed alone, except for which writes of one batch are made before the process of the reconciler
// dies.
type world struct {
	user
	settings
	seed   uint64
	random *rand.Rand
	tick   int
	script map[int]func()

	server *apiserver.Server
	// mu guards what writes change, which the reconciler sends at the same time: live, process, rules and tale.
	mu sync.Mutex
	// live is what the server holds, and seen what the latest pass of the reconciler has read.
	live, seen *view
	// history are the views at the ends of the latest steps, oldest first.
	history []*view

	set        *v1beta1.CloneSet
	reconciler *cloneset.Reconciler
	process    process
	cache      *apiserver.Lagging
	// due is the tick at which the set is reconciled although nothing has changed; 0 for none.
	due   int
	nodes *nodes
	owner *hookOwner
	rules *rules
	tale  *tale
	// idle is for how many ticks nothing has changed since a version.
	idle    int
	version int64
	// ids counts those of new pods.
	ids int
}

// settings are the pace of the components beside the reconciler, and what is installed.
type settings struct {
	nodes int
	// delay is the longest time that a container takes to start, and again to become ready; end is how long it takes
	// to end.
	delay, end int
	// slow is how often, on the average, the scheduler passes a pod by.
	slow int
	// hookDelay is how long the owner of hooks takes to answer.
	hookDelay int
	// lag is how many versions, on the average, the cache of the reconciler is behind.
	lag int
	// daemon is installed on the nodes.
	daemon bool
	// faults of the API server, each of a number of writes; 0 for none.
	faults int
}

// view is what the server holds at one version. Its objects are those of the server, and are only read.
type view struct {
	server    *apiserver.Server
	version   int64
	set       *v1beta1.CloneSet
	pods      map[string]*corev1.Pod
	revisions map[string]*appsv1.ControllerRevision
}

var newScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1beta1.AddToScheme(scheme)
	return scheme
})

// newWorld is a world in which the user creates a set.
func newWorld(t *testing.T, seed uint64, s settings, set *v1beta1.CloneSet) *world {
	t.Helper()
	w := &world{
		seed: seed, settings: s, random: rand.New(rand.NewPCG(seed, 1)), script: map[int]func(){}, set: set.DeepCopy(),
	}
	w.settings.nodes, w.delay = max(s.nodes, 1), max(s.delay, 1)
	w.server = apiserver.New(newScheme(), w.now)
	w.user = user{T: t, client: w.server, namespace: "shop"}
	w.live = &view{pods: map[string]*corev1.Pod{}, revisions: map[string]*appsv1.ControllerRevision{}}
	w.nodes = &nodes{world: w, runs: map[types.UID]map[string]*run{}, calm: map[types.UID]*corev1.Pod{}}
	w.owner = &hookOwner{world: w, since: map[string]int{}}
	w.rules = newRules(w)
	w.tale = &tale{world: w}
	w.process.faults = &podbench.Chance{Seed: seed, Of: s.faults}
	w.server.OnChange(w.changed)
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), w.server, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.server.Create(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.start()
	return w
}

func (w *world) now() time.Time { return epoch.Add(time.Duration(w.tick) * time.Second) }

// epoch is when all worlds begin.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// wait is a number of ticks by chance.
func (w *world) wait() int { return 1 + w.random.IntN(w.delay) }

// changed is called after each change of an object.
func (w *world) changed(before, after client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	object := after
	if after == nil {
		object = before
	}
	switch o := object.(type) {
	case *v1beta1.CloneSet:
		was := w.live.set
		w.live.set = o
		w.tale.report(was, o)
	case *appsv1.ControllerRevision:
		if w.live.revisions[o.Name] = o; after == nil {
			delete(w.live.revisions, o.Name)
		}
	case *corev1.Pod:
		c := change{}
		c.before, _ = before.(*corev1.Pod)
		c.after, _ = after.(*corev1.Pod)
		if w.live.pods[o.Name] = o; after == nil {
			delete(w.live.pods, o.Name)
		}
		w.tale.tell(c)
		w.rules.judge(c)
	}
}

// change of a pod; before or after is nil where it does not exist.
type change struct{ before, after *corev1.Pod }

func (c change) pod() *corev1.Pod {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// fail prints the story so far, and how to see it again.
func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nseed %d, tick %d: %s", w.tale.text(), w.seed, w.tick, fmt.Sprintf(format, args...))
}

// step lets a second pass. All components act once, in an order by chance.
func (w *world) step() {
	w.Helper()
	w.tick++
	if w.idle++; w.server.Version() != w.version {
		w.idle, w.version = 0, w.server.Version()
	}
	if event := w.script[w.tick]; event != nil {
		w.tale.as("user", event)
	}
	actors := []func(){
		func() { w.tale.as("scheduler", func() { w.server.ChangePods(w.schedule) }) },
		func() { w.tale.as("node", func() { w.server.ChangePods(w.nodes.step) }) },
		func() { w.tale.as("hook", w.owner.step) },
		w.control,
	}
	w.random.Shuffle(len(actors), func(i, j int) { actors[i], actors[j] = actors[j], actors[i] })
	for _, act := range actors {
		act()
	}
	w.tale.count()
	if w.lag > 0 {
		w.history = append(w.history, w.view())
		w.history = w.history[max(0, len(w.history)-3*w.lag):]
	}
	if len(w.rules.broken) > 0 {
		w.fail("%s", w.rules.broken[0])
	}
}

// schedule binds a pod to a node.
func (w *world) schedule(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || w.random.IntN(w.slow+1) > 0 {
		return pod
	}
	after := pod.DeepCopy()
	after.Spec.NodeName = fmt.Sprintf("node-%d", w.random.IntN(w.settings.nodes))
	setCondition(after, corev1.PodScheduled, true, metav1.NewTime(w.now()))
	if hasGate(after, kruise.KruisePodReadyConditionType) {
		setCondition(after, kruise.KruisePodReadyConditionType, true, metav1.NewTime(w.now()))
	}
	return after
}

// control has the set reconciled where it is due, or something has changed.
func (w *world) control() {
	if fresh := w.refresh(); !fresh && (w.due == 0 || w.tick < w.due) {
		return
	}
	w.due = 0
	w.begin()
	var result ctrl.Result
	var err error
	w.tale.as("controller", func() {
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)}
		result, err = w.reconciler.Reconcile(w.Context(), request)
	})
	w.rules.reads(nil)
	w.tale.explain()
	if result.RequeueAfter > 0 {
		w.due = w.tick + int((result.RequeueAfter+time.Second-1)/time.Second)
	}
	switch {
	case w.process.dead:
		w.process.deaths++
		w.tale.say("controller", "dies")
		w.start()
	case err != nil:
		w.rules.failed(err)
	default:
		return
	}
	w.due = w.tick + 1
}

// patience is for how long nothing happens in a world that has settled. No component waits longer.
const patience = 80

// settle lets time pass until nothing happens any more.
func (w *world) settle(most int) {
	w.Helper()
	last := 0
	for tick := range w.script {
		last = max(last, tick)
	}
	for w.idle < patience || w.tick < last || w.server.Version() != w.version {
		if w.tick >= last+most {
			w.fail("the world does not settle: %s", w.missing())
		}
		w.step()
	}
}

// settled lets the world settle where the set asks it to. Nothing is written after that.
func (w *world) settled() {
	w.Helper()
	w.settle(w.tick + 3000)
	if why := w.missing(); why != "" {
		w.fail("the world stands still before the set is as it asks for: %s", why)
	}
	writes := len(w.process.writes)
	for range 3 {
		w.due = w.tick
		w.step()
	}
	if n := len(w.process.writes) - writes; n > 0 {
		w.fail("%d writes although nothing is left to do: %v", n, w.process.writes[writes:])
	}
}

// missing is what the set asks for and does not have; empty for nothing.
func (w *world) missing() string {
	set := w.live.set
	l := limitsOf(set)
	if n := int32(len(w.live.pods)); n != l.Replicas {
		return fmt.Sprintf("%d pods instead of %d", n, l.Replicas)
	}
	n := int32(0)
	for name, pod := range w.live.pods {
		if why := w.rules.unavailable(pod); why != "" {
			return name + " is not available: " + why
		}
		if versionOf(&pod.ObjectMeta) == versionOf(&set.Spec.Template.ObjectMeta) {
			n++
		}
	}
	want := l.Replicas - l.Partition
	if s := set.Status; n < want || s.CurrentRevision != s.UpdateRevision && n != want {
		return fmt.Sprintf("%d pods are updated instead of %d", n, want)
	}
	s := set.Status
	if s.ObservedGeneration != set.Generation || s.AvailableReplicas != l.Replicas || s.UpdatedReplicas < want {
		return fmt.Sprintf("the status reports %+v", s)
	}
	return ""
}
