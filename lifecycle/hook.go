package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// StateOf returns the state in the pod's label, which is that of OpenKruise; see [kruise.Keys.StateOf] for others. A
// pod without the label counts as Normal.
func StateOf(pod *corev1.Pod) kruise.LifecycleState { return (*kruise.Keys)(nil).StateOf(pod) }

// HasAny reports whether the pod has any label or finalizer of a hook. A hook that is nil or empty has none.
func HasAny(pod *corev1.Pod, hook *kruise.LifecycleHook) bool {
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

// HasAll reports whether the pod has all labels and finalizers of a hook. It reports true for an empty hook and false
// for nil.
func HasAll(pod *corev1.Pod, hook *kruise.LifecycleHook) bool {
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
