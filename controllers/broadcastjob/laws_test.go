package broadcastjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// oracle decides as the documentation says, question by question, each with a look at everything.
type oracle struct {
	job   *v1beta1.BroadcastJob
	nodes []*corev1.Node
	pods  []*corev1.Pod
	now   time.Time
}

func (o oracle) node(name string) *corev1.Node {
	for _, node := range o.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

func where(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
		MatchFields[0].Values[0]
}

// fits: the worlds of this test have two disks, three taints and no tolerations.
func (o oracle) fits(node *corev1.Node, running bool) bool {
	if want := o.job.Spec.Template.Spec.NodeSelector["disk"]; want != "" && node.Labels["disk"] != want {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute || taint.Effect == corev1.TaintEffectNoSchedule && !running {
			return false
		}
	}
	return running || !node.Spec.Unschedulable && node.Status.Allocatable.Cpu().MilliValue() >= 2000
}

func (oracle) terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (o oracle) tooOften(pod *corev1.Pod) bool {
	return !o.terminal(pod) && pod.DeletionTimestamp == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure &&
		restarts(pod) > int64(o.job.Spec.FailurePolicy.RestartLimit)
}

func (o oracle) active(pod *corev1.Pod) bool {
	return !o.terminal(pod) && pod.DeletionTimestamp == nil && !o.tooOften(pod)
}

// has reports whether a node has a pod of a kind.
func (o oracle) has(node string, is func(*corev1.Pod) bool) bool {
	for _, pod := range o.pods {
		if where(pod) == node && is(pod) {
			return true
		}
	}
	return false
}

// unended are the pods that have neither ended nor are deleted.
func (o oracle) unended(pod *corev1.Pod) bool { return o.active(pod) || o.tooOften(pod) }

// unwanted are the pods that have not ended and do not stay.
func (o oracle) unwanted(pod *corev1.Pod) bool {
	node := o.node(where(pod))
	switch {
	case !o.unended(pod):
		return false
	case node == nil:
		return pod.Spec.NodeName == ""
	}
	return !o.fits(node, pod.Spec.NodeName != "")
}

// unwantedActive are those of them that count as active.
func (o oracle) unwantedActive(pod *corev1.Pod) bool { return o.unwanted(pod) && o.active(pod) }

func (o oracle) count(is func(*corev1.Pod) bool) (n int32) {
	for _, pod := range o.pods {
		if is(pod) {
			n++
		}
	}
	return n
}

// answer is the pass of the oracle: the phase, the nodes that get a pod, the pods that are deleted, and the counters.
func (o oracle) answer() string {
	var create, remove []string
	var desired, waits, running int32
	for _, node := range o.nodes {
		switch {
		case !o.has(node.Name, func(*corev1.Pod) bool { return true }):
			if o.fits(node, false) {
				create = append(create, node.Name)
				desired++
				waits++
			}
		case o.has(node.Name, func(p *corev1.Pod) bool { return o.unended(p) && !o.unwanted(p) }):
			desired++
			waits++
		case o.has(node.Name, o.terminal):
			desired++
		case o.has(node.Name, o.unwanted):
		case o.fits(node, false): // once the pod that is deleted is gone
			desired++
			waits++
		}
	}
	running = o.count(func(p *corev1.Pod) bool { return o.active(p) && o.node(where(p)) != nil }) // until they are deleted
	spec := &o.job.Spec
	succeeded := o.count(func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	failed := o.count(func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed || o.tooOften(p) })
	active := o.count(o.active)
	say := func(phase string, create, remove []string, active, failed int32) string {
		sort.Strings(remove)
		return fmt.Sprintf("%s: creates %v, deletes %v; desired %d, active %d, succeeded %d, failed %d",
			phase, create, remove, desired, active, succeeded, failed)
	}
	pick := func(is func(*corev1.Pod) bool) (names []string) {
		for _, pod := range o.pods {
			if is(pod) {
				names = append(names, pod.Name)
			}
		}
		return names
	}
	late := spec.CompletionPolicy.ActiveDeadlineSeconds != nil && spec.CompletionPolicy.Type != v1beta1.Never &&
		!o.now.Before(o.job.Status.StartTime.Add(time.Duration(*spec.CompletionPolicy.ActiveDeadlineSeconds)*time.Second))
	switch {
	case spec.Paused:
		return say("paused", nil, nil, active, failed)
	case failed > 0 && spec.FailurePolicy.Type == failFast, late && (failed == 0 || spec.FailurePolicy.Type != pause):
		return say("failed", nil, pick(o.active), 0, failed+active)
	case failed > 0 && spec.FailurePolicy.Type == pause:
		return say("paused", nil, nil, active, failed)
	case desired > 0 && waits == 0 && spec.CompletionPolicy.Type != v1beta1.Never:
		return say("completed", nil, pick(o.unwanted), active-o.count(o.unwantedActive), failed)
	}
	remove = pick(o.unwanted)
	limit := int32(spec.Parallelism.IntValue())
	if spec.Parallelism.Type == intstr.String {
		var percent int32
		_, _ = fmt.Sscanf(spec.Parallelism.StrVal, "%d%%", &percent)
		limit = (desired*percent + 99) / 100
	}
	for len(create) > 0 && int32(len(create))+running > limit {
		create = create[:len(create)-1]
	}
	return say("running", create, remove, active+int32(len(create))-o.count(o.unwantedActive), failed)
}

// draw returns a job with nodes and pods at random.
func draw(r *rand.Rand) (in snapshot) {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	job := newJob(
		policy(v1beta1.FailurePolicyType(one("FailFast", "Continue", "Pause", "Continue"))),
		phase(v1beta1.BroadcastJobPhase(one("running", "paused"))),
		requesting("2"), parallelism(one("0", "1", "2", "5", "50%", "100%", "30%")),
	)
	if r.IntN(3) == 0 {
		restarting(int32(r.IntN(3)))(job)
	}
	if r.IntN(3) == 0 {
		job.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if r.IntN(4) == 0 {
		never(job)
	}
	if r.IntN(4) == 0 {
		deadline(int64(r.IntN(120)))(job)
	}
	job.Spec.Paused = r.IntN(8) == 0
	var nodes, pods []string
	for i := range r.IntN(8) {
		nodes = append(nodes,
			fmt.Sprintf("n%d:%s", i, one("", "", "", "", "cordoned", "tainted", "evicting", "preferred", "hdd", "small")))
	}
	calm := r.IntN(2) == 0 // pods that have ended, so that jobs complete
	for i := range r.IntN(10) {
		state := one("pending", "running", "succeeded", "failed", "ending", "1", "3")
		if calm {
			state = one("succeeded", "succeeded", "succeeded", "failed", "ending")
			pods = append(pods, fmt.Sprintf("n%d=%s", i, state))
			continue
		}
		pods = append(pods, fmt.Sprintf("n%d=%s", r.IntN(9), state))
	}
	return snapshot{
		job:   job,
		nodes: newNodes(strings.Join(nodes, " ")),
		pods:  newPods(job, strings.Join(pods, " ")),
		now:   epoch().Add(time.Minute),
	}
}

// Plan agrees with the oracle, in whatever order nodes and pods come, and leaves its input as it was.
func TestOracle(t *testing.T) {
	phases := map[v1beta1.BroadcastJobPhase]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := draw(r)
		before := in.job.DeepCopy()
		want := oracle{in.job, in.nodes, in.pods, in.now}.answer()
		var first *plan
		for i := range 2 {
			pass := planOf(in)
			status := concluded(pass)
			phases[status.Phase]++
			remove := strings.Fields(deleted(pass))
			sort.Strings(remove)
			got := fmt.Sprintf("%s: creates %v, deletes %v; desired %d, active %d, succeeded %d, failed %d",
				status.Phase, strings.Fields(created(pass)), remove, status.Desired, status.Active, status.Succeeded, status.Failed)
			if got != want {
				t.Fatalf("seed %d:\nwant %s\ngot  %s", seed, want, got)
			}
			if i == 0 {
				first = pass
				r.Shuffle(len(in.nodes), func(i, j int) { in.nodes[i], in.nodes[j] = in.nodes[j], in.nodes[i] })
				r.Shuffle(len(in.pods), func(i, j int) { in.pods[i], in.pods[j] = in.pods[j], in.pods[i] })
				continue
			}
			if was, is := fmt.Sprint(deleted(first), first.status, first.notes, first.turn),
				fmt.Sprint(deleted(pass), pass.status, pass.notes, pass.turn); was != is {
				t.Fatalf("seed %d: another order of the input gives another pass:\n%s\n%s", seed, was, is)
			}
		}
		if diff := cmp.Diff(before, in.job); diff != "" {
			t.Fatalf("seed %d: the job was changed:\n%s", seed, diff)
		}
	}
	for _, phase := range []v1beta1.BroadcastJobPhase{
		v1beta1.PhaseRunning, v1beta1.PhasePaused, v1beta1.PhaseCompleted, v1beta1.PhaseFailed,
	} {
		t.Logf("%s: %d", phase, phases[phase])
		if phases[phase] < 50 {
			t.Errorf("%d of the passes end in phase %s", phases[phase], phase)
		}
	}
}

// A cluster at random, in which each pass is executed: the bounds hold at each step, and every job comes to its end.
func TestWorld(t *testing.T) {
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		for range 40 {
			w.disturb()
			w.step()
		}
		w.calm()
		for range 200 {
			if over(w.in.job) {
				break
			}
			w.step()
		}
		if !over(w.in.job) {
			t.Fatalf("seed %d: the job does not end: %+v", seed, w.in.job.Status)
		}
		for range 5 {
			w.step() // the pods that the end leaves
		}
		if pass := planOf(w.in); len(pass.create)+len(pass.remove) > 0 || pass.turn != nil ||
			!cmp.Equal(pass.status, w.in.job.Status) {
			t.Fatalf("seed %d: a job that has ended is not left alone: %+v", seed, pass)
		}
	}
}

type world struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	in   snapshot
	made int
	// ran are the nodes on which a pod succeeded.
	ran map[string]bool
	// lost has the next status be lost: the process ends before the API server gets it.
	lost bool
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	limits := []string{"1", "2", "50%", "100%"}
	job := newJob(policy(goOn), parallelism(limits[r.IntN(len(limits))]), requesting("2"), restarting(1), deadline(500))
	job.Status = v1beta1.BroadcastJobStatus{}
	if r.IntN(3) == 0 {
		policy(failFast)(job)
	}
	return &world{t: t, seed: seed, r: r, ran: map[string]bool{}, in: snapshot{
		job: job, nodes: newNodes("a b c d e"), now: epoch(), bind: r.IntN(2) == 0,
	}}
}

// disturb is what users and nodes do.
func (w *world) disturb() {
	node := w.r.IntN(max(len(w.in.nodes), 1))
	switch w.r.IntN(12) {
	case 0:
		if len(w.in.nodes) > 0 {
			w.in.nodes[node].Spec.Unschedulable = !w.in.nodes[node].Spec.Unschedulable
		}
	case 1:
		if len(w.in.nodes) > 0 {
			w.in.nodes[node].Spec.Taints = [][]corev1.Taint{
				nil, {{Key: "a", Effect: corev1.TaintEffectNoExecute}}, {{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			}[w.r.IntN(3)]
		}
	case 2:
		w.made++
		w.in.nodes = append(w.in.nodes, newNodes(fmt.Sprintf("x%d", w.made))...)
	case 3:
		if len(w.in.nodes) > 1 {
			w.in.nodes = slices.Delete(w.in.nodes, node, node+1)
		}
	case 4:
		w.in.job.Spec.Paused = !w.in.job.Spec.Paused
	case 5:
		if len(w.in.pods) > 0 {
			w.in.pods[w.r.IntN(len(w.in.pods))].DeletionTimestamp = ptr.To(w.in.pods[0].CreationTimestamp)
		}
	case 6:
		w.lost = true
	}
}

func (w *world) calm() {
	w.in.job.Spec.Paused = false
	for _, node := range w.in.nodes {
		node.Spec.Unschedulable, node.Spec.Taints = false, nil
	}
}

// step is a pass, its execution, and what nodes do meanwhile.
func (w *world) step() {
	pass := planOf(w.in)
	w.check(pass)
	crash := w.lost
	w.lost = false
	if pass.ends && crash {
		return // nothing was done
	}
	for _, d := range pass.remove {
		d.DeletionTimestamp = ptr.To(d.CreationTimestamp)
		if d.CreationTimestamp.IsZero() {
			w.t.Fatalf("seed %d: a pod without a creation is deleted", w.seed)
		}
	}
	for _, pod := range pass.create {
		pod = pod.DeepCopy()
		pod.CreationTimestamp.Time = w.in.now
		if slices.ContainsFunc(w.in.pods, func(p *corev1.Pod) bool { return p.Name == pod.Name }) {
			w.t.Fatalf("seed %d: the name %s is taken", w.seed, pod.Name)
		}
		w.in.pods = append(w.in.pods, pod)
	}
	if !crash {
		w.in.job.Status = concluded(pass)
	}
	w.run()
	w.in.now = w.in.now.Add(time.Second)
}

// run is what the scheduler, the nodes and the garbage collector do.
func (w *world) run() {
	kept := w.in.pods[:0]
	for _, pod := range w.in.pods {
		node := slices.ContainsFunc(w.in.nodes, func(n *corev1.Node) bool { return n.Name == where(pod) })
		switch {
		case pod.DeletionTimestamp != nil, pod.Spec.NodeName != "" && !node:
			continue
		case pod.Spec.NodeName == "" && node:
			pod.Spec.NodeName = where(pod)
		case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		default:
			pod.Status.Phase = corev1.PodRunning
			switch w.r.IntN(8) {
			case 0, 1, 2:
				pod.Status.Phase = corev1.PodSucceeded
				w.ran[where(pod)] = true
			case 3:
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
			case 4:
				if w.r.IntN(4) == 0 {
					pod.Status.Phase = corev1.PodFailed
				}
			}
		}
		kept = append(kept, pod)
	}
	w.in.pods = kept
}

// check is what must hold of every pass.
func (w *world) check(pass *plan) {
	w.t.Helper()
	o := oracle{w.in.job, w.in.nodes, w.in.pods, w.in.now}
	fail := func(format string, args ...any) { w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...)) }
	running := map[string]bool{}
	for _, pod := range w.in.pods {
		if o.active(pod) && o.node(where(pod)) != nil {
			if running[where(pod)] {
				fail("two pods are active on node %s", where(pod))
			}
			running[where(pod)] = true
		}
	}
	limit, err := validation.BroadcastParallelism(&w.in.job.Spec, pass.status.Desired)
	if err != nil {
		w.t.Fatal(err)
	}
	staying := len(running)
	for _, d := range pass.remove {
		if o.terminal(d.Pod) {
			fail("pod %s has ended, and is deleted", d.Name)
		}
		if over := over(w.in.job) || pass.ends; over && o.tooOften(d.Pod) && !o.unwanted(d.Pod) {
			fail("the end of the job deletes pod %s, which retries", d.Name)
		}
		if running[where(d.Pod)] {
			staying--
		}
	}
	if len(pass.create) > 0 && staying+len(pass.create) > int(limit) {
		fail("%d pods are created beside %d, at most %d may be active", len(pass.create), staying, limit)
	}
	for _, pod := range pass.create {
		node := o.node(eligible.NodeOf(pod))
		if w.in.job.Spec.Paused || over(w.in.job) || o.has(node.Name, func(*corev1.Pod) bool { return true }) ||
			!o.fits(node, false) {
			fail("a pod is created on node %s", node.Name)
		}
		if w.ran[node.Name] && slices.ContainsFunc(w.in.pods, func(p *corev1.Pod) bool {
			return where(p) == node.Name && o.terminal(p)
		}) {
			fail("node %s runs again", node.Name)
		}
	}
	if !over(w.in.job) && pass.status.Phase == v1beta1.PhaseRunning {
		if left := pass.status.StartTime.Add(500 * time.Second).Sub(w.in.now); pass.after <= 0 ||
			pass.after > left {
			fail("the deadline is in %s, the requeue in %s", left, pass.after)
		}
	}
}
