package scale

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// member is an instance with what follows from its pods.
type member struct {
	*Instance

	// ready is available but for the time, wait is how much of that is left.
	ready, available bool
	wait             time.Duration
	// preparingDelete and preparing are held by a hook, before deletion and before an update.
	preparingDelete, preparing bool
	// pinned has a revision of its own.
	pinned bool
	// first is the pod that stands for all; an empty one where there is none.
	first *corev1.Pod
}

// newMember looks at an instance. none stands for the pods of one that has none.
func newMember(instance *Instance, in *Input, none *corev1.Pod) member {
	m := member{Instance: instance, ready: true, first: none}
	if slices.Contains(instance.Pods, nil) {
		m.Instance = ptr.To(*instance)
		m.Pods = slices.DeleteFunc(slices.Clone(m.Pods), func(pod *corev1.Pod) bool { return pod == nil })
	}
	if len(m.Pods) > 0 {
		m.first = m.Pods[0]
	}
	for _, pod := range m.Pods {
		state := in.Keys.StateOf(pod)
		switch state {
		case kruise.LifecycleStatePreparingDelete:
			m.preparingDelete = true
		case kruise.LifecycleStatePreparingUpdate:
			m.preparing = true
		}
		healthy, since := health(pod, state, in.Keys)
		if healthy {
			m.wait = max(m.wait, remaining(since, in.MinReadySeconds, in.Now))
		}
		m.ready = m.ready && healthy
	}
	m.ready = m.ready && len(m.Pods) >= max(instance.Size, 1) && !instance.Terminating
	if !m.ready {
		m.wait = 0
	}
	m.available = m.ready && m.wait == 0
	return m
}

// isFinished reports whether nothing but the deletion of the instance is left.
func (m *member) isFinished() bool { return m.Terminating && m.Finished }

// labels are those that a strategy looks at.
func (m *member) labels() map[string]string { return m.first.Labels }

// node is where it runs; empty for nowhere.
func (m *member) node() string { return m.first.Spec.NodeName }

// hooked reports whether a hook holds a pod.
func (m *member) hooked(hook *kruise.LifecycleHook) bool {
	return hook != nil && slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool { return lifecycle.HasAny(pod, hook) })
}

// inGrace reports whether a pod waits for the end of the grace period of an in-place update, so that its containers
// have not changed yet.
func (m *member) inGrace(keys *kruise.Keys) bool {
	return slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool {
		_, text, _ := keys.Lookup(pod.Annotations, (*kruise.Keys).InPlaceGraceKey)
		return text != "" || pod.Annotations[kruise.InPlaceUpdateGraceKeyOld] != ""
	})
}

// Available reports whether a pod counts as available: it runs, has been Ready for minReadySeconds, no in-place update
// keeps it from being ready, and its lifecycle state is Normal or none. Where only time is missing, wait is how long.
// A Ready condition without a transition time waits for the full time.
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) (ok bool, wait time.Duration) {
	return (&Input{MinReadySeconds: minReadySeconds, Now: now}).Available(pod)
}

// Available reports whether a pod counts as available, as the function Available does, under the keys of the input.
func (in *Input) Available(pod *corev1.Pod) (ok bool, wait time.Duration) {
	if pod == nil {
		return false, 0
	}
	healthy, since := health(pod, in.Keys.StateOf(pod), in.Keys)
	if !healthy {
		return false, 0
	}
	wait = remaining(since, in.MinReadySeconds, in.Now)
	return wait == 0, wait
}

// health is availability of a pod in a state of its life, but for the time, and since when the pod is ready.
func health(pod *corev1.Pod, state kruise.LifecycleState, keys *kruise.Keys) (ok bool, since time.Time) {
	if pod.Status.Phase != corev1.PodRunning || state != "" && state != kruise.LifecycleStateNormal {
		return false, since
	}
	if c := lifecycle.ConditionOf(pod, keys.InPlaceReadyOf(pod)); c != nil && c.Status != corev1.ConditionTrue {
		return false, since
	}
	ready := lifecycle.ConditionOf(pod, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return false, since
	}
	return true, ready.LastTransitionTime.Time
}

// remaining is how much of the time is left for a pod that is ready since then.
func remaining(since time.Time, minReadySeconds int32, now time.Time) time.Duration {
	if minReadySeconds <= 0 {
		return 0
	}
	least := time.Duration(minReadySeconds) * time.Second
	if since.IsZero() {
		return least
	}
	return max(since.Add(least).Sub(now), 0)
}
