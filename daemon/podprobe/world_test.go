package podprobe

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is a node whose clock a test drives: an API server, a container runtime, and the production reconciler with its
// prober.
type world struct {
	testing.TB
	server *apiserver.Server
	node   *node
	now    time.Time
	// step is how far the clock moves at once.
	step time.Duration
	r    *Reconciler
	// next is when the reconciler asked to be called again; zero for never.
	next   time.Time
	events *record.FakeRecorder
	// news is set by a result, or by a change of the NodePodProbe.
	news atomic.Bool
	// refuse fails the next writes.
	refuse int
	// written is called after a write.
	written func()
	// reads counts live reads.
	reads int
}

// live reads past the cache.
type live struct{ *world }

func (l live) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	l.reads++
	return l.server.Get(ctx, name, into, o...)
}

func (live) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// node is a container runtime. Each container of a pod answers what a test says.
type node struct {
	mu         sync.Mutex
	containers map[string]cri.Container // by pod UID
	good       map[string]bool
	output     map[string]string
	away       bool
	execs      int
}

func (n *node) Containers(_ context.Context, q cri.Query) ([]cri.Container, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away {
		return nil, cri.ErrUnavailable
	}
	if c, ok := n.containers[q.PodUID]; ok && c.Name == q.Name {
		return []cri.Container{c}, nil
	}
	return nil, nil
}

func (n *node) Exec(_ context.Context, id string, _ cri.Command) (cri.Output, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.execs++
	uid, _, _ := strings.Cut(id, "/")
	out := cri.Output{Stdout: []byte(n.output[uid]), Stderr: []byte(n.output[uid])}
	if !n.good[uid] {
		out.ExitCode = 1
	}
	return out, nil
}

// start starts a container of a pod, the generation-th one.
func (n *node) start(uid string, generation int, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.containers[uid] = cri.Container{
		ID: fmt.Sprintf("%s/%d", uid, generation), Name: "main", State: cri.Running, CreatedAt: at, StartedAt: at,
	}
}

func newWorld(t testing.TB, asked *v1alpha1.NodePodProbe) *world {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, now: start, step: 200 * time.Millisecond, node: &node{
		containers: map[string]cri.Container{}, good: map[string]bool{}, output: map[string]string{},
	}}
	w.server = apiserver.New(scheme, func() time.Time { return w.now })
	asked.Name = "node-1"
	if err := w.server.Put(asked); err != nil {
		t.Fatal(err)
	}
	for i := range asked.Spec.PodProbes {
		uid := asked.Spec.PodProbes[i].UID
		w.node.start(uid, 1, start.Add(-time.Minute))
		w.node.good[uid] = true
	}
	w.boot()
	return w
}

// boot starts a new daemon.
func (w *world) boot() {
	w.events = record.NewFakeRecorder(10000)
	faulty := interceptor.NewClient(w.server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, name client.ObjectKey, into client.Object, o ...client.GetOption,
		) error {
			return w.server.Get(ctx, name, into, o...)
		},
		SubResourcePatch: func(
			ctx context.Context, _ client.Client, _ string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			if w.refuse > 0 {
				w.refuse--
				return apierrors.NewServiceUnavailable("refused")
			}
			err := w.server.Status().Patch(ctx, o, p, opts...)
			if w.written != nil {
				w.written()
			}
			return err
		},
	})
	var err error
	w.r, err = New(faulty, "node-1", w.node, Options{
		Now: func() time.Time { return w.now }, Recorder: w.events, Live: live{w},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.r.prober.report = func() { w.news.Store(true) }
	w.next = w.now
}

// tick runs for some time.
func (w *world) tick(span time.Duration) {
	for end := w.now.Add(span); w.now.Before(end); w.now = w.now.Add(w.step) {
		if !w.next.IsZero() && !w.next.After(w.now) {
			w.reconcile()
		}
		var running sync.WaitGroup
		w.r.prober.start(w.Context(), &running)
		running.Wait()
		if w.news.Swap(false) {
			w.reconcile()
		}
	}
}

func (w *world) reconcile() {
	w.next = time.Time{}
	result, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
	switch {
	case err != nil:
		w.next = w.now.Add(time.Second)
	case result.RequeueAfter > 0:
		w.next = w.now.Add(result.RequeueAfter)
	}
}

func (w *world) stored() *v1alpha1.NodePodProbe {
	n := &v1alpha1.NodePodProbe{}
	if err := w.server.Get(w.Context(), types.NamespacedName{Name: "node-1"}, n); err != nil {
		w.Fatal(err)
	}
	return n
}

// states of the pods in the status, in short: uid=state.
func (w *world) states() map[string]string {
	all := map[string]string{}
	for _, p := range w.stored().Status.PodProbeStatuses {
		for _, s := range p.ProbeStates {
			all[p.UID] = string(s.State)
		}
	}
	return all
}

// stateOf is the state of the probe of a pod.
func (w *world) stateOf(uid string) v1alpha1.ContainerProbeState {
	for _, p := range w.stored().Status.PodProbeStatuses {
		if p.UID == uid {
			return p.ProbeStates[0]
		}
	}
	return v1alpha1.ContainerProbeState{}
}

// writes counts the writes since the last time.
func (w *world) writes() int {
	n := 0
	for _, request := range w.server.Requests() {
		if strings.HasPrefix(request, "PATCH") {
			n++
		}
	}
	return n
}

// drained counts the events since the last time.
func (w *world) drained() int {
	for n := 0; ; n++ {
		select {
		case <-w.events.Events:
		default:
			return n
		}
	}
}

// 200 containers cost one write each second while they start, one for a flip, and none while nothing changes.
func TestWrites(t *testing.T) {
	w := newWorld(t, asking(10, map[string]int{"a": 100, "b": 100}))
	w.tick(15 * time.Second)
	if n := w.writes(); n > 12 || len(w.states()) != 200 {
		t.Errorf("%d writes for %d first results", n, len(w.states()))
	}
	if n := w.drained(); n != 200 {
		t.Errorf("%d events for 200 first results", n)
	}
	w.tick(time.Minute)
	if n, events := w.writes(), w.drained(); n != 0 || events != 0 {
		t.Errorf("%d writes and %d events without a change", n, events)
	}
	w.node.good["a-7"] = false
	w.tick(11 * time.Second)
	if n, events := w.writes(), w.drained(); n != 1 || events != 1 || w.states()["a-7"] != "Failed" ||
		w.states()["a-8"] != "Succeeded" {
		t.Errorf("%d writes and %d events for a flip to %s", n, events, w.states()["a-7"])
	}
	if w.node.execs < 200*8 {
		t.Errorf("only %d commands ran", w.node.execs)
	}
}

// Results that stay the same are written every ten minutes, all at once.
func TestRefresh(t *testing.T) {
	w := newWorld(t, asking(30, map[string]int{"a": 5}))
	w.step = 5 * time.Second
	w.tick(time.Minute)
	w.writes()
	w.tick(31 * time.Minute)
	if n := w.writes(); n != 3 {
		t.Errorf("%d writes to refresh in 31 minutes", n)
	}
	if at := w.stateOf("a-2").LastProbeTime; w.now.Sub(at.Time) > 21*time.Minute {
		t.Errorf("a result is of %s ago", w.now.Sub(at.Time))
	}
}

// Messages that change all the time are reported every ten seconds.
func TestMessages(t *testing.T) {
	w := newWorld(t, asking(1, map[string]int{"a": 5}))
	w.tick(5 * time.Second)
	w.writes()
	for i := range 60 {
		w.node.output["a-1"] = fmt.Sprint(i)
		w.tick(time.Second)
	}
	if n := w.writes(); n < 5 || n > 7 {
		t.Errorf("%d writes for messages that changed for a minute", n)
	}
	w.tick(11 * time.Second)
	if got := w.stateOf("a-1").Message; got != "59" {
		t.Errorf("the last message is %q", got)
	}
}

// A daemon that starts again writes nothing, but for a container that was replaced meanwhile.
func TestTakeover(t *testing.T) {
	w := newWorld(t, asking(1, map[string]int{"a": 20}))
	w.tick(5 * time.Second)
	w.node.good["a-3"] = false
	w.tick(5 * time.Second)
	before := w.stored().ResourceVersion
	w.now = w.now.Add(time.Minute)
	w.boot()
	w.tick(10 * time.Second)
	if after := w.stored().ResourceVersion; after != before {
		t.Errorf("a restarted daemon wrote: %v", w.server.Requests())
	}
	w.now = w.now.Add(time.Minute)
	w.node.start("a-4", 2, w.now)
	w.node.good["a-4"] = false
	w.boot()
	w.tick(10 * time.Second)
	if got := w.states()["a-4"]; got != "Failed" {
		t.Errorf("a container that was replaced is %s", got)
	}
}

// Whatever happens, in the end the status is what the containers answer. No two reports come within a second.
func TestRandomWorld(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	for range 3 {
		full := asking(1, map[string]int{"a": 6, "b": 6})
		w := newWorld(t, full.DeepCopy())
		for range 60 {
			uid := fmt.Sprintf("%c-%d", "ab"[r.Intn(2)], r.Intn(6))
			switch r.Intn(8) {
			case 0, 1, 2:
				w.node.good[uid] = !w.node.good[uid]
			case 3:
				w.node.start(uid, r.Intn(1000), w.now)
			case 4:
				w.node.away = !w.node.away
			case 5:
				w.refuse = r.Intn(3)
			case 6:
				w.boot()
			case 7: // some pods come and go
				n := w.stored()
				n.Spec.PodProbes = nil
				for _, p := range full.Spec.PodProbes {
					if r.Intn(3) > 0 {
						n.Spec.PodProbes = append(n.Spec.PodProbes, p)
					}
				}
				if err := w.server.Put(n); err != nil {
					t.Fatal(err)
				}
				w.news.Store(true)
			}
			w.writes()
			w.tick(time.Duration(r.Intn(20)) * 100 * time.Millisecond)
			if n := w.writes(); n > 3 {
				t.Fatalf("seed %d: %d writes in two seconds", seed, n)
			}
		}
		w.node.away, w.refuse = false, 0
		w.tick(20 * time.Second)
		n, got := w.stored(), w.states()
		if len(got) != len(n.Spec.PodProbes) {
			t.Fatalf("seed %d: %d states of %d probes", seed, len(got), len(n.Spec.PodProbes))
		}
		for _, p := range n.Spec.PodProbes {
			want := "Failed"
			if w.node.good[p.UID] {
				want = "Succeeded"
			}
			if got[p.UID] != want {
				t.Fatalf("seed %d: %s is %s, want %s", seed, p.UID, got[p.UID], want)
			}
		}
	}
}
