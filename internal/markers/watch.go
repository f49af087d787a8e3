package markers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// PodEvents handles the events of pods that a marker selects, or selected. wake requeues what depends on a pod:
// selecting are the markers that select one of its states. also reports whether a change of a pod matters besides those
// of PodChanged; nil for no other change. When the process starts, a reconciler looks at all its objects anyway.
func (m *Markers) PodEvents(
	also func(was, is *corev1.Pod) bool, wake func(q watches.Queue, pod *corev1.Pod, selecting []*v1alpha1.PodProbeMarker),
) handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, was, is *corev1.Pod) {
		switch {
		case was == nil && !podprobe.IsProbed(is), is == nil && !podprobe.IsActive(was): // else an update came before
			return
		case was != nil && is != nil && !PodChanged(was, is) && (also == nil || !also(was, is)) &&
			!m.reselected(ctx, was, is):
			return
		}
		var all []*v1alpha1.PodProbeMarker
		for _, pod := range []*corev1.Pod{was, is} {
			if pod != nil {
				selecting, err := m.Selecting(ctx, pod)
				watches.Log(ctx, err, "Failed to find the markers of a pod")
				all = append(all, selecting...)
			}
		}
		if len(all) > 0 {
			wake(q, cmp.Or(is, was), all)
		}
	})
}

// PodChanged reports whether a change of a pod may change what is probed in it: whether it is probed at all, and where.
// What kubelets report of containers does not count, nor do labels.
func PodChanged(was, is *corev1.Pod) bool {
	return was.UID != is.UID || was.Spec.NodeName != is.Spec.NodeName || was.Status.PodIP != is.Status.PodIP ||
		podprobe.IsProbed(was) != podprobe.IsProbed(is) || podprobe.IsActive(was) != podprobe.IsActive(is)
}

// reselected reports whether other markers select a pod after a change of its labels, or may do so. A label that a
// marker writes, and that another writer changes, is no reason to look at the pod.
func (m *Markers) reselected(ctx context.Context, was, is *corev1.Pod) bool {
	if maps.Equal(was.Labels, is.Labels) {
		return false
	}
	before, err := m.Selecting(ctx, was)
	if err != nil {
		return true
	}
	after, err := m.Selecting(ctx, is)
	return err != nil || !slices.Equal(before, after)
}
