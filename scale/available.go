package scale

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

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
	if pod.Status.Phase != corev1.PodRunning {
		return false, since
	}
	if state != "" && state != kruise.LifecycleStateNormal {
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
	elapsed := now.Sub(since)
	if elapsed >= least {
		return 0
	}
	if wait := least - elapsed; wait > 0 {
		return wait
	}
	return math.MaxInt64 // the clock of the writer of the condition is centuries ahead
}
