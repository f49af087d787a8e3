package eligible

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pin has the scheduler put a pod on one node: the required node affinity is replaced by the name of the node.
// Preferred terms stay. The affinity of the spec may be shared, and is copied.
func Pin(spec *corev1.PodSpec, node string) {
	affinity := spec.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}
	spec.Affinity = affinity
}

// NodeOf returns the name of the node that a pod is on, or that it is pinned to while it waits for the scheduler. Empty
// for a pod of which neither is known.
func NodeOf(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	switch {
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName
	case affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil:
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// Changed reports whether a node has changed in something that rules look at, so that their verdicts may be others.
// Heartbeats, conditions and images are not among that.
func Changed(before, after *corev1.Node) bool {
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
		}) ||
		!maps.EqualFunc(before.Status.Allocatable, after.Status.Allocatable, func(a, b resource.Quantity) bool {
			return a.Cmp(b) == 0
		})
}

// DaemonTolerations returns the tolerations that the pods of a DaemonSet have besides those of their template: they
// stay on a node that is not ready, unreachable, short of a resource or cordoned, and start there.
func DaemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	taints := []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	}
	if spec.HostNetwork {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule})
	}
	all := make([]corev1.Toleration, len(taints))
	for i, taint := range taints {
		all[i] = corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
	}
	return all
}

// Tolerate adds tolerations to a pod spec, but for those that the spec has. A toleration of the same key, operator,
// value and effect with seconds is replaced: it would end.
func Tolerate(spec *corev1.PodSpec, tolerations []corev1.Toleration) {
	same := func(a, b *corev1.Toleration) bool {
		return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect
	}
	spec.Tolerations = slices.Clone(spec.Tolerations)
	for i := range tolerations {
		at := slices.IndexFunc(spec.Tolerations, func(t corev1.Toleration) bool { return same(&t, &tolerations[i]) })
		if at < 0 {
			spec.Tolerations = append(spec.Tolerations, tolerations[i])
			continue
		}
		spec.Tolerations[at] = tolerations[i]
	}
}
