package eligible_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// node returns a node of 4 cpus.
func node(changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd", "cpus": "4"}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110"),
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "v", Effect: effect})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func required(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
	return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}}
}

func label(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: key, Operator: operator, Values: values,
	}}}
}

func requests(cpu string) corev1.PodSpec {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}}
}

func TestCheck(t *testing.T) {
	run, stay := eligible.Verdict{Run: true, Stay: true}, func(r eligible.Reason, detail string) eligible.Verdict {
		return eligible.Verdict{Stay: true, Reason: r, Detail: detail}
	}
	no := func(r eligible.Reason, detail string) eligible.Verdict {
		return eligible.Verdict{Reason: r, Detail: detail}
	}
	daemon, job := eligible.Options{Daemon: true}, eligible.Options{Cordons: true, Requests: true}
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	tolerates := func(t corev1.Toleration) corev1.PodSpec { return corev1.PodSpec{Tolerations: []corev1.Toleration{t}} }

	for why, c := range map[string]struct {
		spec    corev1.PodSpec
		options eligible.Options
		node    *corev1.Node
		want    eligible.Verdict
	}{
		"an empty spec runs everywhere": {node: node(), want: run},
		"another node is named": {
			spec: corev1.PodSpec{NodeName: "n2"}, node: node(), want: no(eligible.OtherNode, ""),
		},
		"the node selector does not match": {
			spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "hdd"}}, node: node(), want: no(eligible.Affinity, ""),
		},
		"the affinity does not match": {
			spec: required(label("cpus", corev1.NodeSelectorOpGt, "4")), node: node(), want: no(eligible.Affinity, ""),
		},
		"NoSchedule keeps the pod that is there": {
			node: node(tainted("a", noSchedule)), want: stay(eligible.Taint, "a=v:NoSchedule"),
		},
		"NoExecute ends the pod": {
			node: node(tainted("a", noExecute)), want: no(eligible.Taint, "a=v:NoExecute"),
		},
		"NoExecute is the reason beside another": {
			node: node(tainted("a", noSchedule), tainted("b", noExecute)), want: no(eligible.Taint, "b=v:NoExecute"),
		},
		"an operator of a later API": {
			spec: tolerates(corev1.Toleration{Key: "a", Operator: "Gt", Value: "1"}),
			node: node(tainted("a", noSchedule)),
			want: stay(eligible.Taint, "a=v:NoSchedule"),
		},
		"a job does not": {
			options: job,
			node:    node(tainted(corev1.TaintNodeNotReady, noExecute)),
			want:    no(eligible.Taint, "node.kubernetes.io/not-ready=v:NoExecute"),
		},
		"a job does not run there": {options: job, node: node(cordoned), want: stay(eligible.Cordoned, "")},
		"no network is for the host's pods alone": {
			options: daemon,
			node:    node(tainted(corev1.TaintNodeNetworkUnavailable, noSchedule)),
			want:    stay(eligible.Taint, "node.kubernetes.io/network-unavailable=v:NoSchedule"),
		},
		"the requests do not fit": {
			options: job, spec: requests("4001m"), node: node(), want: stay(eligible.TooSmall, "cpu"),
		},
		"a node without room for pods": {
			options: job,
			node:    node(func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourcePods) }),
			want:    stay(eligible.TooSmall, "pods"),
		},
		"a node of nothing": {node: &corev1.Node{}, want: run},
	} {
		t.Run(why, func(t *testing.T) {
			got := eligible.Compile(&c.spec, c.options).Check(c.node)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if !got.Run && got.Note("n1").Text == "" {
				t.Error("a refusal without a text")
			}
		})
	}
}

func TestPin(t *testing.T) {
	shared := required(label("disk", corev1.NodeSelectorOpIn, "ssd"))
	shared.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
		Weight: 1,
	}}
	before := shared.DeepCopy()
	spec := shared
	eligible.Pin(&spec, "n7")
	if diff := cmp.Diff(before, &shared); diff != "" {
		t.Errorf("the shared affinity changed:\n%s", diff)
	}
	if got := eligible.NodeOf(&corev1.Pod{Spec: spec}); got != "n7" ||
		len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("pinned to %q, with %v", got, spec.Affinity.NodeAffinity)
	}
	if !eligible.Compile(&spec, eligible.Options{}).Check(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n7"}}).Run {
		t.Error("the node of the pin does not match")
	}
	spec.NodeName = "n8"
	if got := eligible.NodeOf(&corev1.Pod{Spec: spec}); got != "n8" {
		t.Errorf("a pod on n8 is of node %q", got)
	}
	for why, loose := range map[string]corev1.PodSpec{
		"no affinity": {}, "an affinity to labels": *before, "no node affinity": {Affinity: &corev1.Affinity{}},
	} {
		if got := eligible.NodeOf(&corev1.Pod{Spec: loose}); got != "" {
			t.Errorf("%s: node %q", why, got)
		}
	}
}

func TestTolerate(t *testing.T) {
	own := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](30)},
		{Key: "a"},
	}
	spec := corev1.PodSpec{Tolerations: own}
	eligible.Tolerate(&spec, eligible.DaemonTolerations(&spec))
	if len(spec.Tolerations) != 7 || spec.Tolerations[0].TolerationSeconds != nil || own[0].TolerationSeconds == nil {
		t.Errorf("tolerations %v of %v", spec.Tolerations, own)
	}
	again := *spec.DeepCopy()
	eligible.Tolerate(&again, eligible.DaemonTolerations(&again))
	if diff := cmp.Diff(spec, again); diff != "" {
		t.Errorf("the second time changes:\n%s", diff)
	}
}

// What no rule looks at does not count as a change, all else does.
func TestChanged(t *testing.T) {
	for why, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"nothing": {func(*corev1.Node) {}, false},
		"a heartbeat": {
			func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "False"}} }, false,
		},
		"an image":    {func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}} }, false},
		"a note":      {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"a label":     {func(n *corev1.Node) { n.Labels["disk"] = "hdd" }, true},
		"a taint":     {tainted("a", corev1.TaintEffectNoSchedule), true},
		"a cordon":    {cordoned, true},
		"less to use": {func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("3") }, true},
		"the same cpu": {
			func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4000m") }, false,
		},
		"another kind": {func(n *corev1.Node) {
			delete(n.Status.Allocatable, corev1.ResourceCPU)
			n.Status.Allocatable["gpu"] = resource.MustParse("4")
		}, true},
	} {
		t.Run(why, func(t *testing.T) {
			if got := eligible.Changed(node(), node(c.change)); got != c.want {
				t.Errorf("changed %t, want %t", got, c.want)
			}
		})
	}
}
