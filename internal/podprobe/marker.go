package podprobe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// separator is between the marker and the probe in the name of a probe of a node. Neither may contain it.
const separator = "#"

// NameOf returns the name that a node has for a probe of a marker.
func NameOf(marker, probe string) string { return marker + separator + probe }

// MarkerOf returns the name of the marker in the name of a probe of a node, and the name of the probe. A name without a
// marker belongs to another controller.
func MarkerOf(name string) (marker, probe string, ok bool) {
	marker, probe, ok = strings.Cut(name, separator)
	return marker, probe, ok && marker != ""
}

// IsActive reports whether a pod runs, or will.
func IsActive(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
}

// IsProbed reports whether a pod is probed, if a marker selects it: it is active, initialized, and on a node.
func IsProbed(pod *corev1.Pod) bool {
	if !IsActive(pod) || pod.Spec.NodeName == "" {
		return false
	}
	c := lifecycle.ConditionOf(pod, corev1.PodInitialized)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsVirtual reports whether no daemon runs on a node: the provider of the node runs the probes.
func IsVirtual(node *corev1.Node) bool { return node.Labels["type"] == "virtual-kubelet" }

// Selector returns the selector of a marker. Without a selector, or with one that is empty or invalid, a marker selects
// nothing.
func Selector(m *v1alpha1.PodProbeMarker) labels.Selector {
	if m.Spec.Selector == nil {
		return labels.Nothing()
	}
	s, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
	if err != nil || s.Empty() {
		return labels.Nothing()
	}
	return s
}

// Selecting returns the markers that select a pod, by name. A marker that is being deleted selects none.
func Selecting(pod *corev1.Pod, markers []*v1alpha1.PodProbeMarker) []*v1alpha1.PodProbeMarker {
	var found []*v1alpha1.PodProbeMarker
	for _, m := range markers {
		if m.Namespace == pod.Namespace && m.DeletionTimestamp == nil && Selector(m).Matches(labels.Set(pod.Labels)) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.PodProbeMarker) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
