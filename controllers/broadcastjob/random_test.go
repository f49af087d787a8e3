package broadcastjob_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// lagging is a client that shows pods and jobs as they are now.
func lagging(m *model) *apiserver.Lagging {
	l := m.Server.Lagging()
	l.Only = func(o runtime.Object) bool {
		_, isJob := o.(*unstructured.Unstructured)
		_, isPods := o.(*corev1.PodList)
		return isJob || isPods
	}
	l.Freeze()
	return l
}

// world is a job of which users, nodes and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	cache  *apiserver.Lagging
	faults *podbench.Chance

	job   *v1beta1.BroadcastJob
	limit int
	made  int
	ended v1beta1.BroadcastJobPhase
}

// Whatever happens, no node runs the job twice, the parallelism holds, nothing is created after the end, and the job
// comes to an end.
func TestRandom(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 50 {
				w.act()
				w.step()
			}
			w.faults.Of = 0
			w.settle()
			if made := w.faults.Made(); made[podbench.NotMade] == 0 || made[podbench.AnswerLost] == 0 {
				t.Errorf("seed %d: faults %v", seed, made)
			}
		})
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		model: newModel(t, "a b c d e", broadcastjob.Options{Bind: seed%3 == 0}), rand: rand.New(rand.NewPCG(seed, 1)),
		faults: &podbench.Chance{Seed: seed, Of: 15, Each: true},
	}
	w.limit = 1 + w.rand.IntN(4)
	changes := []func(*v1beta1.BroadcastJob){
		parallelism(fmt.Sprint(w.limit)), restarting, policy(v1beta1.FailurePolicyTypeContinue), deadline(300),
	}
	if w.rand.IntN(3) == 0 {
		changes = append(changes, policy(v1beta1.FailurePolicyTypeFailFast))
	}
	w.job = w.create(changes...)
	w.reboot()
	return w
}

// reboot starts another process, which has no memory and a cache that is up to date, behind a client that fails at
// random.
func (w *world) reboot() {
	w.Helper()
	w.cache = lagging(w.model)
	w.restart(podbench.Writes(w.cache, w.faults.Do))
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
	if w.rand.IntN(3) > 0 || w.faults.Of == 0 {
		w.cache.Freeze()
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
		if node := nodes[eligible.NodeOf(pod)]; isNew &&
			(node == nil || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || w.ended != "") {
			w.Errorf("seed %d: pod %s is created on node %+v, the job is %q", w.faults.Seed, pod.Name, node, w.ended)
		}
	}
	for _, pod := range before {
		still := slices.ContainsFunc(w.pods(), func(p *corev1.Pod) bool {
			return p.UID == pod.UID && (p.DeletionTimestamp == nil || pod.DeletionTimestamp != nil)
		})
		if isEnded(pod) && !still {
			w.Errorf("seed %d: pod %s has ended, and is deleted", w.faults.Seed, pod.Name)
		}
	}
	for node, n := range perNode {
		if n > 1 {
			w.Errorf("seed %d: node %s has %d pods", w.faults.Seed, node, n)
		}
	}
	if active > w.limit {
		w.Errorf("seed %d: %d pods are active, at most %d may be", w.faults.Seed, active, w.limit)
	}
	if w.job.Status.Active < 0 || w.ended != "" && w.job.Status.Phase != w.ended {
		w.Errorf("seed %d: the job was %q, and is %s", w.faults.Seed, w.ended, counters(w.job))
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
		w.Fatalf("seed %d: no end: %s; %s", w.faults.Seed, counters(w.job), w.picture())
	}
	for range 5 {
		w.step()
	}
	w.Server.Requests()
	w.step()
	if requests := w.Server.Requests(); len(requests) > 0 {
		w.Errorf("seed %d: a job that has ended is not left alone: %q", w.faults.Seed, requests)
	}
	for _, pod := range w.pods() {
		if tooOften(pod) && !isEnded(pod) && w.ended == v1beta1.PhaseCompleted {
			w.Errorf("seed %d: the job completed before pod %s", w.faults.Seed, pod.Name)
		}
		if !isEnded(pod) && !tooOften(pod) {
			w.Errorf("seed %d: pod %s is left", w.faults.Seed, pod.Name)
		}
	}
}
