package rollout

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Matters reports whether a plan may differ after a change of a pod.
func Matters(before, after *corev1.Pod) bool {
	if before.ResourceVersion == after.ResourceVersion {
		return false
	}
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || before.Generation != after.Generation ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!maps.Equal(before.Labels, after.Labels) || !sameRecords(before, after) || !sameConditions(before, after) ||
		!slices.EqualFunc(before.Spec.Containers, after.Spec.Containers, sameImage) ||
		!slices.EqualFunc(before.Status.ContainerStatuses, after.Status.ContainerStatuses, sameContainer)
}

// sameRecords compares the annotations that plans read.
func sameRecords(a, b *corev1.Pod) bool {
	for _, key := range []string{
		kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey,
		kruise.SidecarSetInPlaceUpdateStateKey,
		kruise.SidecarSetWorkingHotUpgradeContainerKey,
	} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return true
}

func sameConditions(a, b *corev1.Pod) bool {
	status := func(pod *corev1.Pod, t corev1.PodConditionType) (status corev1.ConditionStatus, message string) {
		if c := lifecycle.ConditionOf(pod, t); c != nil {
			return c.Status, c.Message
		}
		return "", ""
	}
	readyBefore, _ := status(a, corev1.PodReady) // the message names the containers that are not
	readyAfter, _ := status(b, corev1.PodReady)
	before, messageBefore := status(a, kruise.SidecarSetUpgradable)
	after, messageAfter := status(b, kruise.SidecarSetUpgradable)
	return readyBefore == readyAfter && before == after && messageBefore == messageAfter
}

func sameImage(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image }

func sameContainer(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && a.Ready == b.Ready && a.Image == b.Image && a.ImageID == b.ImageID &&
		a.ContainerID == b.ContainerID && (a.State.Running == nil) == (b.State.Running == nil)
}

// NeedsNamespaces reports whether a set selects namespaces by other labels than their names, so that Input.Namespaces
// is needed.
func NeedsNamespaces(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	for key := range selector.MatchLabels {
		if key != corev1.LabelMetadataName {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key != corev1.LabelMetadataName
	})
}
