package rollout

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Matters reports whether a plan may differ after a change of a pod.
func Matters(before, after *corev1.Pod) bool {
	if before.ResourceVersion == after.ResourceVersion {
		return false
	}
	same := apiequality.Semantic.DeepEqual
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || before.Generation != after.Generation ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!slices.EqualFunc(before.Spec.Containers, after.Spec.Containers, sameImage) ||
		!same(before.Status.Conditions, after.Status.Conditions) ||
		!same(before.Status.ContainerStatuses, after.Status.ContainerStatuses)
}

func sameImage(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image }
