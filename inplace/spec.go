package inplace

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/write"
)

// spec compares the fields of a pod's spec that may change without a restart, and evens out what may change. Without
// the policy a field stays as it is, and counts as fixed.
func (d *differ) spec(from, to *corev1.PodSpec) {
	if d.policy.Tolerations {
		if len(lacking(to.Tolerations, from.Tolerations)) > 0 {
			d.block("spec.tolerations", "tolerations can be added to a running pod, and not be changed or removed")
		}
		d.change.Tolerations = lacking(from.Tolerations, to.Tolerations)
		from.Tolerations = to.Tolerations
	}
	if before, after := from.ActiveDeadlineSeconds, to.ActiveDeadlineSeconds; d.policy.ActiveDeadline {
		switch {
		case before != nil && (after == nil || *after > *before):
			d.block("spec.activeDeadlineSeconds", "the deadline of a running pod can be set or lowered, and not be raised")
		case after != nil && (before == nil || *after < *before):
			d.change.ActiveDeadlineSeconds = ptr.To(*after)
		}
		from.ActiveDeadlineSeconds = after
	}
}

// lacking returns the tolerations of a second list that a first lacks.
func lacking(have, want []corev1.Toleration) []corev1.Toleration {
	var lacks []corev1.Toleration
	for i := range want {
		if !slices.ContainsFunc(have, func(t corev1.Toleration) bool { return equal(&t, &want[i]) }) {
			lacks = append(lacks, *want[i].DeepCopy())
		}
	}
	return lacks
}

// specOps write the fields of a pod's spec that change without a restart, unless the pod has them. The first write of
// an update has them all: no container waits for them.
func (l look) specOps(c *Change) []write.Op {
	var ops []write.Op
	for i := range l.pod.Spec.InitContainers {
		has := &l.pod.Spec.InitContainers[i]
		if image, ok := c.InitImages[has.Name]; ok && has.Image != image {
			ops = append(ops, write.Replace(write.Pointer("spec", "initContainers", strconv.Itoa(i), "image"), image))
		}
	}
	has, want := l.pod.Spec.ActiveDeadlineSeconds, c.ActiveDeadlineSeconds
	if want != nil && (has == nil || *has > *want) {
		ops = append(ops, write.Add("/spec/activeDeadlineSeconds", *want))
	}
	return append(ops, tolerate(l.pod.Spec.Tolerations, c.Tolerations)...)
}

// tolerate adds tolerations. A toleration that the API server has added to the pod by default gives way to one that
// differs only in its seconds: the API server would not have added it to a new pod.
func tolerate(have, want []corev1.Toleration) []write.Op {
	var ops []write.Op
	have = slices.Clone(have)
	for _, t := range lacking(have, want) {
		at := slices.IndexFunc(have, func(old corev1.Toleration) bool { return isInjected(&old) && t.MatchToleration(&old) })
		path := write.Pointer("spec", "tolerations", strconv.Itoa(max(at, 0)))
		switch {
		case at >= 0:
			ops = append(ops, write.Test(path, have[at]), write.Replace(path, t))
			have[at] = t
			continue
		case len(have) == 0:
			ops = append(ops, write.Add("/spec/tolerations", []corev1.Toleration{t}))
		default:
			ops = append(ops, write.Add("/spec/tolerations/-", t))
		}
		have = append(have, t)
	}
	return ops
}

// isInjected reports whether a toleration is one that the API server adds to each pod by default.
func isInjected(t *corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) &&
		t.Operator == corev1.TolerationOpExists && t.Effect == corev1.TaintEffectNoExecute &&
		ptr.Equal(t.TolerationSeconds, ptr.To[int64](300))
}
