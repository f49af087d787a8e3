package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
)

// epoch is when all worlds begin; a tick is a second.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is everything there is. Nothing in it happens at random but by its seed.
type world struct {
	testing.TB
	seed     uint64
	random   *rand.Rand
	tick     int
	settings settings
	script   map[int]func(*world)

	server *server
	nodes  *nodes
	owner  *owner
	rules  *rules
	tale   *tale
	// history is what the server held at the end of the latest ticks.
	history []*snapshot

	// client is the process of the controller that lives; last is its latest turn.
	client *client
	last   *turn
	again  int // the tick at which it takes another turn although it sees nothing new; 0 for none
	// writes counts those of the controller, and it dies at one.
	writes int
	dies   struct {
		at    int
		after bool
	}
	// birth is how the world came to where the user does something for the first time.
	birth struct {
		told   string
		writes int
	}
	// idle is for how many ticks nothing was written, since a version.
	idle    int
	version int64
}

// settings say how quick the others in the world are.
type settings struct {
	nodes int
	// delay is the most that a container takes to start, and again to become ready; end is how long it takes to end.
	delay, end int
	// slow is how often, on the average, the scheduler passes a pod by.
	slow int
	// hook is how long the owner of hooks takes to answer.
	hook int
	// lag is how many versions, on the average, the controller's cache is behind.
	lag    int
	daemon bool
	// policy is those of the controller.
	policy inplace.Policy
}

func newWorld(t testing.TB, seed uint64, s settings, first spec) *world {
	t.Helper()
	w := &world{TB: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), settings: s, script: map[int]func(*world){}}
	if s.daemon {
		w.settings.policy.Env = inplace.EnvRestart
	}
	w.settings.nodes, w.settings.delay = max(s.nodes, 1), max(s.delay, 1)
	w.server = &server{now: w.now, pods: map[string]*object{}, shop: shop{Name: "shop", Spec: first}, watch: w.watch}
	w.nodes = &nodes{world: w, runs: map[types.UID]map[string]*run{}, calm: map[types.UID]*corev1.Pod{}, daemon: s.daemon}
	w.owner = &owner{world: w, since: map[string]int{}}
	w.rules = newRules(w)
	w.tale = &tale{world: w}
	w.client = &client{world: w}
	return w
}

func (w *world) now() metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(w.tick) * time.Second))
}

// delay is how long something takes.
func (w *world) delay() int { return 1 + w.random.IntN(w.settings.delay) }

func (w *world) watch(done apiWrite) {
	w.idle = 0
	w.tale.tell(done)
	w.rules.judge(done)
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) must(_ *corev1.Pod, err error) {
	w.Helper()
	w.check(err)
}

// fail tells how it came so far, and how to see it again.
func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nseed %d, tick %d: %s", w.tale.text(), w.seed, w.tick, fmt.Sprintf(format, args...))
}

// step lets a second pass.
func (w *world) step() {
	w.tick++
	if w.idle++; w.server.version != w.version {
		w.idle, w.version = 0, w.server.version
	}
	if event := w.script[w.tick]; event != nil {
		event(w)
	}
	actors := []func(){
		func() { w.each(w.schedule) }, func() { w.each(w.nodes.step) }, func() { w.each(w.owner.step) }, w.control,
	}
	w.random.Shuffle(len(actors), func(i, j int) { actors[i], actors[j] = actors[j], actors[i] })
	for _, act := range actors {
		act()
	}
	w.tale.count()
	if w.settings.lag > 0 {
		w.history = append(w.history, w.server.snapshot())
		if len(w.history) > 3*w.settings.lag {
			w.history = w.history[1:]
		}
	}
}

// each does something with every pod that there is, in an order by chance.
func (w *world) each(do func(*corev1.Pod)) {
	pods := w.server.snapshot().pods
	for _, i := range w.random.Perm(len(pods)) {
		if pod := w.server.pod(pods[i].Name); pod != nil {
			do(pod)
		}
	}
}

// control gives the controller a turn, when it has reason to take one.
func (w *world) control() {
	before := w.client.cache
	if before != nil {
		w.client.refresh()
		if w.client.cache.version == before.version && (w.again == 0 || w.tick < w.again) {
			return
		}
	}
	t := &turn{api: w.client, now: w.now().Time, policy: w.settings.policy}
	w.last, w.again = t, 0
	since := len(w.tale.lines)
	err := w.outlive(t.reconcile)
	w.tale.plan(t, since)
	if t.after > 0 {
		w.again = w.tick + int((t.after+time.Second-1)/time.Second)
	}
	if err != nil {
		w.tale.say("controller", "looks again: %v", err)
		w.rules.failed(err)
		w.again = w.tick + 1
	}
}

// outlive restarts the controller when it dies.
func (w *world) outlive(reconcile func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case death:
			w.client, w.again, w.rules.writing = &client{world: w}, w.tick+1, false
		default:
			panic(r)
		}
	}()
	return reconcile()
}

// patience is for how long nothing happens in a world that has settled. It is longer than whatever anybody waits for.
const patience = 80

// settle lets time pass until nothing happens any more.
func (w *world) settle(most int) {
	w.Helper()
	for last := w.end(); w.idle < patience || w.tick < last || w.server.version != w.version; {
		if w.tick >= most {
			w.fail("the world does not settle: %s", w.missing())
		}
		w.step()
	}
	w.check(w.server.intact())
}

// end is the tick of the last event of the script.
func (w *world) end() int {
	last := 0
	for tick := range w.script {
		last = max(last, tick)
	}
	return last
}

// settled lets the world settle where it should.
func (w *world) settled() {
	w.Helper()
	w.settle(w.tick + 3000)
	if why := w.missing(); why != "" {
		w.fail("the world stands still before it is done: %s", why)
	}
	writes := w.writes
	for range 3 {
		w.again = w.tick
		w.step()
	}
	if w.writes != writes {
		w.fail("%d writes although all is done", w.writes-writes)
	}
}

// missing says what keeps the world from being what the user wants; empty for nothing.
func (w *world) missing() string {
	s := &w.server.shop.Spec
	limits, err := s.limits()
	w.check(err)
	want := limits.Replicas * int32(max(s.Size, 1))
	updated := want - limits.Partition*int32(max(s.Size, 1))
	all := w.server.snapshot()
	if n := int32(len(all.pods)); n != want {
		return fmt.Sprintf("%d pods instead of %d", n, want)
	}
	n := int32(0)
	for _, pod := range all.pods {
		if ok, why := w.rules.isAvailable(pod); !ok {
			return pod.Name + " is not available: " + why
		}
		if versionOf(&pod.ObjectMeta) == versionOf(&s.Template.ObjectMeta) {
			n++
		}
	}
	if n < updated || w.last != nil && w.last.update != w.last.current && n != updated {
		return fmt.Sprintf("%d pods are updated instead of %d", n, updated)
	}
	return ""
}

// notesOf are the reasons that the last plan gives.
func (w *world) notesOf() []note.Note {
	if w.last == nil {
		return nil
	}
	return w.last.plan.Notes
}
