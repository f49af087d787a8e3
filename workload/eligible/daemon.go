package eligible

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DaemonTolerations returns the tolerations that the pods of a DaemonSet have beside those of their template: they stay
// on a node that is not ready, unreachable, short of a resource or cordoned, and start there.
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
