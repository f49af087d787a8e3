package broadcastjob_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// lagging is a client whose reads of pods and jobs are those of a cache that lags.
type lagging struct {
	client.WithWatch

	pods []corev1.Pod
	job  *unstructured.Unstructured
}

// refresh brings the cache up to date.
func (l *lagging) refresh(m *model) {
	l.pods = nil
	for _, pod := range m.pods() {
		l.pods = append(l.pods, *pod)
	}
	l.job = stored.Untyped(v1beta1.GroupVersion.WithKind("BroadcastJob"))
	if err := m.Server.Get(m.Context(), client.ObjectKey{Namespace: "shop", Name: "check"}, l.job); err != nil {
		l.job = nil
	}
}

// Get implements client.Reader.
func (l *lagging) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	raw, is := into.(*unstructured.Unstructured)
	if !is {
		return l.WithWatch.Get(ctx, key, into, o...)
	}
	if l.job == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "broadcastjobs"}, key.Name)
	}
	l.job.DeepCopyInto(raw)
	return nil
}

// List implements client.Reader.
func (l *lagging) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	pods, is := into.(*corev1.PodList)
	if !is {
		return l.WithWatch.List(ctx, into, o...)
	}
	for i := range l.pods {
		pods.Items = append(pods.Items, *l.pods[i].DeepCopy())
	}
	return nil
}

// world is a job of which users, nodes and faults do something at random at each turn.
type world struct {
	*model

	rand  *rand.Rand
	seed  uint64
	cache *lagging
	// writes are how often each write was tried, and faults how often each kind was made, under the lock: writes are sent at the same time.
	mu     sync.Mutex
	all    int
	writes map[string]uint64
	faults map[string]int

	job    *v1beta1.BroadcastJob
	limit  int
	faulty bool
	made   int
	ended  v1beta1.BroadcastJobPhase
}

// Whatever happens, no node runs the job twice, the parallelism holds, nothing is created after the end, and the job comes to an end.
func TestRandom(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 50 {
				w.act()
				w.step()
			}
			w.faulty = false
			w.settle()
			if w.faults["not made"] == 0 || w.faults["answer lost"] == 0 {
				t.Errorf("seed %d: faults %v", seed, w.faults)
			}
		})
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		model: newModel(t, "a b c d e", broadcastjob.Options{Bind: seed%3 == 0}), rand: rand.New(rand.NewPCG(seed, 1)), seed: seed,
		writes: map[string]uint64{}, faults: map[string]int{}, faulty: true,
	}
	w.limit = 1 + w.rand.IntN(4)
	changes := []func(*v1beta1.BroadcastJob){parallelism(fmt.Sprint(w.limit)), restarting, policy(v1beta1.FailurePolicyTypeContinue), deadline(300)}
	if w.rand.IntN(3) == 0 {
		changes = append(changes, policy(v1beta1.FailurePolicyTypeFailFast))
	}
	w.job = w.create(changes...)
	w.reboot()
	return w
}

// reboot starts another process, which has no memory and a cache that is up to date, behind a client that fails at random.
func (w *world) reboot() {
	w.Helper()
	w.cache = &lagging{WithWatch: w.Server}
	w.cache.refresh(w.model)
	faulty := podbench.Writes(w.Server, func(what string, write func() error) error {
		switch w.fault(what) {
		case "not made":
			return apierrors.NewInternalError(fmt.Errorf("not made"))
		case "answer lost":
			if err := write(); err != nil {
				return err
			}
			return apierrors.NewInternalError(fmt.Errorf("made, and the answer is lost"))
		case "refused":
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "check", fmt.Errorf("a policy rejects it"))
		}
		return write()
	})
	w.restart(reads{faulty, w.cache})
}

// reads is a client that reads from a cache.
type reads struct {
	client.WithWatch
	cache *lagging
}

// Get implements client.Reader.
func (r reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return r.cache.Get(ctx, key, into, o...)
}

// List implements client.Reader.
func (r reads) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return r.cache.List(ctx, into, o...)
}

// fault of a write. It depends on the seed and on how often the write was tried, not on the order of concurrent writes. The first two writes have one
// of each kind.
func (w *world) fault(what string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.faulty {
		return ""
	}
	kinds := []string{"not made", "answer lost", "refused"}
	w.all++
	w.writes[what]++
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(what))
	kind := rand.New(rand.NewPCG(w.seed^hash.Sum64(), w.writes[what])).IntN(15)
	if w.all <= 2 {
		kind = w.all - 1
	}
	if kind >= len(kinds) {
		return ""
	}
	w.faults[kinds[kind]]++
	return kinds[kind]
}

// act is what users, nodes and faults do.
func (w *world) act() {
	w.Helper()
	nodes, pods := w.nodes(), w.pods()
	node := nodes[w.rand.IntN(len(nodes))]
	switch w.rand.IntN(14) {
	case 0:
		w.node(node.Name, cordon)
	case 1:
		w.node(node.Name, uncordon)
	case 2:
		w.made++
		w.addNode(fmt.Sprint("x", w.made))
	case 3:
		if len(nodes) > 2 {
			if err := w.Server.Delete(w.Context(), node); err != nil {
				w.Fatal(err)
			}
		}
	case 4:
		w.node(node.Name, evict)
	case 5:
		w.node(node.Name, func(n *corev1.Node) { n.Spec.Taints = nil })
	case 6:
		if len(pods) > 0 {
			if err := w.Server.Delete(w.Context(), pods[w.rand.IntN(len(pods))]); err != nil {
				w.Fatal(err)
			}
		}
	case 7:
		w.reboot()
	case 8:
		w.change(w.job, paused(w.rand.IntN(2) == 0))
	case 9:
		w.ends[node.Name] = []string{"failed", "restarts", "retries", "runs", "waits", ""}[w.rand.IntN(6)]
	}
}

// step is a pass over a cache that may lag, what must hold after it, and a step of the nodes.
func (w *world) step() {
	w.Helper()
	if w.rand.IntN(3) > 0 || !w.faulty {
		w.cache.refresh(w.model)
	}
	before := w.pods()
	w.Reconcile()
	w.Look(w.job)
	w.check(before)
	w.run()
	w.Advance(time.Second)
}

func isEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func tooOften(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 2
}

func (w *world) check(before []*corev1.Pod) {
	w.Helper()
	nodes := map[string]*corev1.Node{}
	for _, node := range w.nodes() {
		nodes[node.Name] = node
	}
	active, perNode := 0, map[string]int{}
	for _, pod := range w.pods() {
		perNode[eligible.NodeOf(pod)]++
		if !isEnded(pod) && pod.DeletionTimestamp == nil && !tooOften(pod) && nodes[eligible.NodeOf(pod)] != nil {
			active++
		}
		isNew := !slices.ContainsFunc(before, func(p *corev1.Pod) bool { return p.UID == pod.UID })
		if node := nodes[eligible.NodeOf(pod)]; isNew && (node == nil || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || w.ended != "") {
			w.Errorf("seed %d: pod %s is created on node %+v, the job is %q", w.seed, pod.Name, node, w.ended)
		}
	}
	for _, pod := range before {
		still := slices.ContainsFunc(w.pods(), func(p *corev1.Pod) bool {
			return p.UID == pod.UID && (p.DeletionTimestamp == nil || pod.DeletionTimestamp != nil)
		})
		if isEnded(pod) && !still {
			w.Errorf("seed %d: pod %s has ended, and is deleted", w.seed, pod.Name)
		}
	}
	for node, n := range perNode {
		if n > 1 {
			w.Errorf("seed %d: node %s has %d pods", w.seed, node, n)
		}
	}
	if active > w.limit {
		w.Errorf("seed %d: %d pods are active, at most %d may be", w.seed, active, w.limit)
	}
	if w.job.Status.Active < 0 || w.ended != "" && w.job.Status.Phase != w.ended {
		w.Errorf("seed %d: the job was %q, and is %s", w.seed, w.ended, counters(w.job))
	}
	if w.job.Status.CompletionTime != nil {
		w.ended = w.job.Status.Phase
	}
}

// settle expects the job to end, without another fault, and the status to have the counts of its pods.
func (w *world) settle() {
	w.Helper()
	w.change(w.job, paused(false))
	clear(w.ends)
	for _, node := range w.nodes() {
		w.node(node.Name, func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = false, nil })
	}
	for range 100 {
		w.step()
		if w.ended != "" {
			break
		}
	}
	if w.ended == "" {
		w.Fatalf("seed %d: no end: %s; %s", w.seed, counters(w.job), w.picture())
	}
	for range 5 {
		w.step()
	}
	w.Server.Requests()
	w.step()
	if requests := w.Server.Requests(); len(requests) > 0 {
		w.Errorf("seed %d: a job that has ended is not left alone: %q", w.seed, requests)
	}
	for _, pod := range w.pods() {
		if tooOften(pod) && !isEnded(pod) && w.ended == v1beta1.PhaseCompleted {
			w.Errorf("seed %d: the job completed before pod %s", w.seed, pod.Name)
		}
		if !isEnded(pod) && !tooOften(pod) {
			w.Errorf("seed %d: pod %s is left", w.seed, pod.Name)
		}
	}
}
