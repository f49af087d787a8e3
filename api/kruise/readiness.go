package kruise

import corev1 "k8s.io/api/core/v1"

const (
	// KruisePodReadyConditionType is the readiness gate, and the condition, with which several writers take a pod
	// out of traffic. It is True only while none of them has an entry. Its message is the list of entries, as
	// JSON of []NotReadyEntry sorted by user agent, then key.
	KruisePodReadyConditionType corev1.PodConditionType = "KruisePodReady"
	// ReasonReadinessGatesNotReady is the reason of a pod's condition Ready that is False because of its gates.
	ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"
)

// NotReadyEntry is one writer's reason to keep a pod not ready.
type NotReadyEntry struct {
	// UserAgent is the writer.
	UserAgent string `json:"userAgent"`
	// Key distinguishes several reasons of one writer.
	Key string `json:"key"`
}

// The entries of lifecycle hooks with markPodNotReady.
const (
	// LifecycleUserAgent is their user agent.
	LifecycleUserAgent = "Lifecycle"
	// LifecyclePreDeleteHookKey is the key while a hook holds the pod before deletion.
	LifecyclePreDeleteHookKey = "preDeleteHook"
	// LifecyclePreUpdateHookKey is the key while a hook holds the pod before an in-place update.
	LifecyclePreUpdateHookKey = "preUpdateHook"
)
