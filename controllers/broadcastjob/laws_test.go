package broadcastjob

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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
