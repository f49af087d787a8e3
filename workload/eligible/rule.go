package eligible

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kruisekit/kruisekit/note"
)

// Reason is why a node gets no pod.
type Reason string

const (
	// OtherNode is a node that spec.nodeName excludes.
	OtherNode Reason = "NodeNameMismatch"
	// Affinity is a node that the node selector or the required node affinity excludes.
	Affinity Reason = "NodeAffinityMismatch"
	// Taint is a node with a taint that the pod does not tolerate.
	Taint Reason = "TaintNotTolerated"
	// Cordoned is a node that is marked unschedulable.
	Cordoned Reason = "NodeUnschedulable"
	// TooSmall is a node that cannot allocate what the pod requests, even without other pods.
	TooSmall Reason = "InsufficientAllocatable"
)

// Options of a Rule. The zero value asks for what the scheduler asks for at least.
type Options struct {
	// Daemon tolerates what the pods of a DaemonSet tolerate besides the tolerations of the spec: see DaemonTolerations.
	Daemon bool
	// Cordons excludes nodes with spec.unschedulable, unless the pod tolerates the taint of that name.
	Cordons bool
	// Requests excludes nodes whose allocatable resources are smaller than the requests of the pod.
	Requests bool
}

// Verdict is what a Rule decides about a node.
type Verdict struct {
	// Run means that the node gets a pod.
	Run bool
	// Stay means that a pod that is on the node may stay there.
	Stay bool
	// Reason is why Run is false; empty where it is true.
	Reason Reason
	// Detail is the part of the node that the reason concerns: a taint, or a resource.
	Detail string
}

// Note returns the reason as a note about a node. It must only be called where Run is false.
func (v Verdict) Note(node string) note.Note {
	text := map[Reason]string{
		OtherNode: "the node name of the pod template is another one",
		Affinity:  "the node selector or the required node affinity does not match",
		Taint:     "the pod does not tolerate the taint",
		Cordoned:  "the node is unschedulable",
		TooSmall:  "the node cannot allocate what the pod requests of",
	}[v.Reason]
	if v.Detail != "" {
		text += " " + v.Detail
	}
	return note.Note{Code: string(v.Reason), Object: node, Text: text}
}

// Rule is a pod spec, compiled for questions about nodes. It may be used concurrently.
type Rule struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	cordons     bool
	requests    []request
}

type request struct {
	name   corev1.ResourceName
	amount apiresource.Quantity
}

// Compile returns the rule of a pod spec. The spec is not kept, and may change afterwards.
func Compile(spec *corev1.PodSpec, o Options) *Rule {
	r := &Rule{nodeName: spec.NodeName, cordons: o.Cordons, tolerations: slices.Clone(spec.Tolerations)}
	r.affinity = nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity,
	}})
	if o.Daemon {
		r.tolerations = append(r.tolerations, DaemonTolerations(spec)...)
	}
	if o.Requests {
		r.requests = requestsOf(spec)
	}
	return r
}

// requestsOf returns what a pod requests, the room for the pod itself included, by name.
func requestsOf(spec *corev1.PodSpec) []request {
	list := resource.PodRequests(&corev1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
	all := []request{{corev1.ResourcePods, *apiresource.NewQuantity(1, apiresource.DecimalSI)}}
	for name, amount := range list {
		if amount.Sign() > 0 && name != corev1.ResourcePods {
			all = append(all, request{name, amount})
		}
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Check returns the verdict about a node, which is only read.
func (r *Rule) Check(node *corev1.Node) Verdict {
	if r.nodeName != "" && r.nodeName != node.Name {
		return Verdict{Reason: OtherNode}
	}
	if matches, err := r.affinity.Match(node); err != nil || !matches {
		return Verdict{Reason: Affinity} // a term that cannot be parsed matches nothing
	}
	if v := r.checkTaints(node); !v.Run {
		return v
	}
	if r.cordons && node.Spec.Unschedulable && !r.tolerates(&corev1.Taint{
		Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule,
	}) {
		return Verdict{Stay: true, Reason: Cordoned}
	}
	for _, want := range r.requests {
		if has := node.Status.Allocatable[want.name]; has.Cmp(want.amount) < 0 {
			return Verdict{Stay: true, Reason: TooSmall, Detail: string(want.name)}
		}
	}
	return Verdict{Run: true, Stay: true}
}

// checkTaints returns the verdict of the taints alone. The first one with NoExecute is the reason before all others.
func (r *Rule) checkTaints(node *corev1.Node) Verdict {
	v := Verdict{Run: true, Stay: true}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		switch {
		case !binds(taint) || r.tolerates(taint):
		case taint.Effect == corev1.TaintEffectNoExecute:
			return Verdict{Reason: Taint, Detail: taint.ToString()}
		case v.Run:
			v = Verdict{Stay: true, Reason: Taint, Detail: taint.ToString()}
		}
	}
	return v
}

// binds reports whether a taint keeps pods from a node.
func binds(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// tolerates reports whether the pod tolerates a taint.
func (r *Rule) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(r.tolerations, func(t corev1.Toleration) bool { return matches(&t, taint) })
}

// matches is how API servers and schedulers without the comparison of numbers read a toleration. The same function of
// k8s.io/api takes a logger.
func matches(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false
}
