package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// StateOf is the state that a pod's label tells; empty for a pod that never had one, which is as good as Normal.
func StateOf(pod *corev1.Pod) pub.LifecycleState {
	return pub.LifecycleState(pod.Labels[pub.LifecycleStateKey])
}

// HasAny says whether a pod carries any label or finalizer of a hook. No hook, or an empty one, has none.
func HasAny(pod *corev1.Pod, hook *pub.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if got, ok := pod.Labels[key]; ok && got == value {
			return true
		}
	}
	return slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return slices.Contains(pod.Finalizers, f) })
}

// HasAll says whether a pod carries all labels and finalizers of a hook. An empty hook asks for nothing;
// without a hook the answer is no.
func HasAll(pod *corev1.Pod, hook *pub.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if got, ok := pod.Labels[key]; !ok || got != value {
			return false
		}
	}
	return !slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return !slices.Contains(pod.Finalizers, f) })
}
