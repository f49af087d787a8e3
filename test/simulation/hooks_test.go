package simulation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// owner is who answers the hooks of the workload, each time after some ticks.
type owner struct {
	*world
	// since is when it saw a pod in its state for the first time.
	since map[string]int
}

// step lets a pod go, or says that it is done with it.
func (o *owner) step(pod *corev1.Pod) {
	hooks := o.server.shop.Spec.Hooks
	if hooks == nil {
		return
	}
	state := lifecycle.StateOf(pod)
	if pod.DeletionTimestamp == nil && (state == kruise.LifecycleStateNormal || state == kruise.LifecycleStateUpdating) {
		return
	}
	key := string(pod.UID) + string(state)
	if _, seen := o.since[key]; !seen {
		o.since[key] = o.tick
	}
	if o.tick < o.since[key]+o.settings.hook {
		return
	}
	after := pod.DeepCopy()
	switch {
	case pod.DeletionTimestamp != nil:
		letGo(after, hooks.PreDelete)
		letGo(after, hooks.InPlaceUpdate)
	case state == kruise.LifecycleStatePreparingDelete:
		letGo(after, hooks.PreDelete)
	case state == kruise.LifecycleStatePreparingUpdate:
		letGo(after, hooks.InPlaceUpdate)
	case state == kruise.LifecycleStatePreparingNormal:
		putOn(after, hooks.PreNormal)
	case state == kruise.LifecycleStateUpdated:
		putOn(after, hooks.InPlaceUpdate)
	}
	o.must(o.server.replace(apiWrite{by: "hook", verb: "answer", before: pod, after: after}))
	if o.server.pod(pod.Name) != pod {
		delete(o.since, key)
	}
}

func letGo(pod *corev1.Pod, hook *kruise.LifecycleHook) {
	if hook == nil {
		return
	}
	for key := range hook.LabelsHandler {
		delete(pod.Labels, key)
	}
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return slices.Contains(hook.FinalizersHandler, f) })
}

func putOn(pod *corev1.Pod, hook *kruise.LifecycleHook) {
	if hook == nil {
		return
	}
	maps.Copy(pod.Labels, hook.LabelsHandler)
	for _, f := range hook.FinalizersHandler {
		if !slices.Contains(pod.Finalizers, f) {
			pod.Finalizers = append(pod.Finalizers, f)
		}
	}
}
