package cloneset_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// hookOwner answers the hooks of the set, each after some ticks.
type hookOwner struct {
	*world
	// since is the tick at which the owner has seen a pod in its state for the first time.
	since map[string]int
}

func (o *hookOwner) step() {
	if o.live.set.Spec.Lifecycle != nil {
		o.server.ChangePods(o.answer)
	}
}

// answer releases a pod, or takes the pod back.
func (o *hookOwner) answer(pod *corev1.Pod) *corev1.Pod {
	state := lifecycle.StateOf(pod)
	if pod.DeletionTimestamp == nil && (state == normal || state == updating) {
		return pod
	}
	key := string(pod.UID) + string(state)
	if _, seen := o.since[key]; !seen {
		o.since[key] = o.tick
	}
	if o.tick < o.since[key]+o.hookDelay {
		return pod
	}
	delete(o.since, key)
	after, hooks := pod.DeepCopy(), o.live.set.Spec.Lifecycle
	switch {
	case pod.DeletionTimestamp != nil:
		release(after, hooks.PreDelete)
		release(after, hooks.InPlaceUpdate)
	case state == preparingDelete:
		release(after, hooks.PreDelete)
	case state == preparingUpdate:
		release(after, hooks.InPlaceUpdate)
	case state == preparingNormal:
		hold(after, hooks.PreNormal)
	case state == kruise.LifecycleStateUpdated:
		hold(after, hooks.InPlaceUpdate)
	}
	return after
}

func release(pod *corev1.Pod, hook *kruise.LifecycleHook) {
	if hook == nil {
		return
	}
	for key := range hook.LabelsHandler {
		delete(pod.Labels, key)
	}
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool {
		return slices.Contains(hook.FinalizersHandler, f)
	})
}

func hold(pod *corev1.Pod, hook *kruise.LifecycleHook) {
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
