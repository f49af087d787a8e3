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
}

func newMember(instance *Instance, in *Input) member {
	m := member{Instance: instance, ready: true}
	if slices.Contains(instance.Pods, nil) {
		m.Instance = ptr.To(*instance)
		m.Pods = slices.DeleteFunc(slices.Clone(m.Pods), func(pod *corev1.Pod) bool { return pod == nil })
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

// first is the pod that stands for all; nil where there is none.
func (m *member) first() *corev1.Pod {
	if len(m.Pods) == 0 {
		return nil
	}
	return m.Pods[0]
}

// labels are those that a strategy looks at.
func (m *member) labels() map[string]string {
	if pod := m.first(); pod != nil {
		return pod.Labels
	}
	return nil
}

// node is where it runs; empty for nowhere.
func (m *member) node() string {
	if pod := m.first(); pod != nil {
		return pod.Spec.NodeName
	}
	return ""
}

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
