package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// hooks answer the lifecycle hooks of a workload at once, unless they are held.
type hooks struct {
	*kruise.Lifecycle

	held   bool
	record *record
}

// answer releases a pod, or takes the pod back.
func (h *hooks) answer(pod *corev1.Pod) *corev1.Pod {
	name, hook := h.waitedFor(pod)
	if hook == nil || !h.record.owns(pod) {
		return pod
	}
	h.record.hook(pod, name)
	if h.held {
		return pod
	}
	after := pod.DeepCopy()
	switch lifecycle.StateOf(pod) {
	case kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateUpdated:
		if after.Labels == nil {
			after.Labels = map[string]string{}
		}
		maps.Copy(after.Labels, hook.LabelsHandler)
		for _, f := range hook.FinalizersHandler {
			if !slices.Contains(after.Finalizers, f) && pod.DeletionTimestamp == nil {
				after.Finalizers = append(after.Finalizers, f)
			}
		}
	default:
		for key := range hook.LabelsHandler {
			delete(after.Labels, key)
		}
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool {
			return slices.Contains(hook.FinalizersHandler, f)
		})
	}
	return after
}

// waitedFor returns the hook that holds a pod, and its name; nil for none.
func (h *hooks) waitedFor(pod *corev1.Pod) (string, *kruise.LifecycleHook) {
	if h.Lifecycle == nil {
		return "", nil
	}
	holds := func(hook *kruise.LifecycleHook) bool { return hook != nil && lifecycle.HasAny(pod, hook) }
	lacks := func(hook *kruise.LifecycleHook) bool { return hook != nil && !lifecycle.HasAll(pod, hook) }
	switch state := lifecycle.StateOf(pod); {
	case (pod.DeletionTimestamp != nil || state == kruise.LifecycleStatePreparingDelete) && holds(h.PreDelete):
		return "preDelete", h.PreDelete
	case (pod.DeletionTimestamp != nil || state == kruise.LifecycleStatePreparingUpdate) && holds(h.InPlaceUpdate):
		return "inPlaceUpdate", h.InPlaceUpdate
	case pod.DeletionTimestamp != nil:
		return "", nil
	case state == kruise.LifecycleStatePreparingNormal && lacks(h.PreNormal):
		return "preNormal", h.PreNormal
	case state == kruise.LifecycleStateUpdated && lacks(h.InPlaceUpdate):
		return "inPlaceUpdate", h.InPlaceUpdate
	}
	return "", nil
}
