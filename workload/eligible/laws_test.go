package eligible_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// A compiled rule decides as the functions that the scheduler uses, asked one after the other.
func TestRulesAgreeWithTheScheduler(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	reasons := map[string]int{}
	for range 5000 {
		spec, o, n := randomSpec(r), eligible.Options{
			Daemon: r.IntN(2) == 0, Cordons: r.IntN(2) == 0, Requests: r.IntN(2) == 0,
		}, randomNode(r)
		got := eligible.Compile(&spec, o).Check(n)
		if run, stay := naive(&spec, o, n); got.Run != run || got.Stay != stay {
			t.Fatalf("seed %d: %v, want run=%t stay=%t for %+v with %+v on %+v", seed, got, run, stay, spec, o, n)
		}
		if got.Run && !got.Stay || got.Run != (got.Reason == "") {
			t.Fatalf("seed %d: verdict %v", seed, got)
		}
		reasons[string(got.Reason)]++
		other := randomNode(r)
		if !eligible.Changed(n, other) {
			other.Name = n.Name
			if now := eligible.Compile(&spec, o).Check(other); now != got {
				t.Fatalf("seed %d: no change from %+v to %+v, but %v became %v", seed, n, other, got, now)
			}
		}
	}
	for _, reason := range []eligible.Reason{
		"", eligible.OtherNode, eligible.Affinity, eligible.Taint, eligible.Cordoned, eligible.TooSmall,
	} {
		if reasons[string(reason)] == 0 {
			t.Errorf("seed %d: no verdict with reason %q: %v", seed, reason, reasons)
		}
	}
}

// tolerated is what the documentation of Kubernetes says. The functions of component-helpers have other parameters in
// each minor version.
func tolerated(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		effect := t.Effect == "" || t.Effect == taint.Effect
		key := t.Key == "" || t.Key == taint.Key
		value := t.Operator == corev1.TolerationOpExists ||
			(t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
		return effect && key && value
	})
}

func naive(spec *corev1.PodSpec, o eligible.Options, n *corev1.Node) (run, stay bool) {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	if o.Daemon {
		eligible.Tolerate(&pod.Spec, eligible.DaemonTolerations(spec))
	}
	if spec.NodeName != "" && spec.NodeName != n.Name {
		return false, false
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n); !matches || err != nil {
		return false, false
	}
	untolerated := func(effects ...corev1.TaintEffect) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return slices.Contains(effects, t.Effect) && !tolerated(pod.Spec.Tolerations, t)
		})
	}
	if untolerated(corev1.TaintEffectNoExecute) {
		return false, false
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	run = !untolerated(corev1.TaintEffectNoSchedule)
	if o.Cordons && n.Spec.Unschedulable &&
		!tolerated(pod.Spec.Tolerations, cordon) {
		run = false
	}
	if o.Requests {
		cpu := resource.Quantity{}
		for _, c := range spec.Containers {
			cpu.Add(c.Resources.Requests[corev1.ResourceCPU])
		}
		run = run && n.Status.Allocatable.Cpu().Cmp(cpu) >= 0 && n.Status.Allocatable.Pods().Value() >= 1
	}
	return run, true
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomTaints(r *rand.Rand) (taints []corev1.Taint) {
	for range r.IntN(3) {
		taints = append(taints, corev1.Taint{
			Key: pick(r, "a", "b", corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, ""), Value: pick(r, "", "v", "1"),
			Effect: pick(r, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, ""),
		})
	}
	return taints
}

func randomNode(r *rand.Rand) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pick(r, "n1", "n2", "")}}
	if r.IntN(5) > 0 {
		n.Labels = map[string]string{"disk": pick(r, "ssd", "hdd"), "cpus": pick(r, "1", "2", "many")}
	}
	n.Spec.Taints, n.Spec.Unschedulable = randomTaints(r), r.IntN(4) == 0
	if r.IntN(5) > 0 {
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:  resource.MustParse(pick(r, "1", "2", "1500m")),
			corev1.ResourcePods: resource.MustParse(pick(r, "0", "1", "110", "110")),
		}
	}
	return n
}

func randomSpec(r *rand.Rand) corev1.PodSpec {
	spec := requests(pick(r, "1", "2", "1001m", "0"))
	spec.NodeName, spec.HostNetwork = pick(r, "", "", "", "n1"), r.IntN(2) == 0
	if r.IntN(3) == 0 {
		spec.NodeSelector = map[string]string{"disk": pick(r, "ssd", "hdd")}
	}
	if r.IntN(2) == 0 {
		var terms []corev1.NodeSelectorTerm
		for range r.IntN(3) {
			terms = append(terms, label(pick(r, "cpus", "disk"), pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
				corev1.NodeSelectorOpGt, corev1.NodeSelectorOpExists, "Near"), pick(r, [][]string{{"1"}, {"ssd", "2"}, nil}...)...))
		}
		if r.IntN(3) == 0 {
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: "In", Values: []string{"n2"},
			}}})
		}
		spec.Affinity = required(terms...).Affinity
	}
	for range r.IntN(3) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key:      pick(r, "a", "b", corev1.TaintNodeUnschedulable, ""),
			Operator: pick(r, corev1.TolerationOpExists, corev1.TolerationOpEqual, "", "Lt", "Gt"),
			Value:    pick(r, "", "v", "1"),
			Effect:   pick(r, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, ""),
		})
	}
	return spec
}
