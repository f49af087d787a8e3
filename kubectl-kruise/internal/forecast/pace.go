package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Pace is how fast pods start, restart and end.
type Pace struct {
	// Start is from the creation of a pod until its containers are ready.
	Start Seconds `json:"start"`
	// Restart is from an update in place until the containers of the pod are ready again.
	Restart Seconds `json:"restart"`
	// End is from the deletion of a pod until the pod is gone.
	End Seconds `json:"end"`
	// Assumed names the fields that no pod has a history for.
	Assumed []string `json:"assumed,omitempty"`
}

// assumedStart is how long pods take to start where no pod shows it.
const assumedStart = Seconds(10 * time.Second)

// paceOf fills the fields of a pace that are zero: the median of what pods show.
func paceOf(given Pace, pods []*corev1.Pod, template *corev1.PodTemplateSpec) Pace {
	p := Pace{Start: given.Start, Restart: given.Restart, End: given.End}
	if p.Start == 0 {
		if p.Start = median(pods, startOf); p.Start == 0 {
			p.Start = assumedStart
			p.Assumed = append(p.Assumed, "start")
		}
	}
	if p.Restart == 0 {
		if p.Restart = median(pods, restartOf); p.Restart == 0 {
			p.Restart = p.Start
			p.Assumed = append(p.Assumed, "restart")
		}
	}
	if p.End == 0 {
		grace := ptr.Deref(template.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
		p.End = Seconds(time.Duration(max(grace, 1)) * time.Second)
		p.Assumed = append(p.Assumed, "end")
	}
	return p
}

// median of what pods show, rounded up to seconds; 0 where no pod shows anything.
func median(pods []*corev1.Pod, of func(*corev1.Pod) (time.Duration, bool)) Seconds {
	var all []time.Duration
	for _, pod := range pods {
		if d, shows := of(pod); shows {
			all = append(all, max(d, time.Second))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return Seconds((all[len(all)/2] + time.Second - 1).Truncate(time.Second))
}

// startOf is how long a pod took to start. A pod whose containers restarted, or that was updated in place, does not
// show it any more.
func startOf(pod *corev1.Pod) (time.Duration, bool) {
	ready := lifecycle.ConditionOf(pod, corev1.ContainersReady)
	if ready == nil || ready.Status != corev1.ConditionTrue || ready.LastTransitionTime.IsZero() {
		return 0, false
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].RestartCount > 0 {
			return 0, false
		}
	}
	if state, err := inplace.StateOf(pod, nil); err != nil || state != nil {
		return 0, false
	}
	took := ready.LastTransitionTime.Sub(pod.CreationTimestamp.Time)
	return took, took >= 0
}

// restartOf is how long the latest update in place of a pod took.
func restartOf(pod *corev1.Pod) (time.Duration, bool) {
	state, err := inplace.StateOf(pod, nil)
	ready := lifecycle.ConditionOf(pod, corev1.ContainersReady)
	if err != nil || state == nil || !state.UpdateImages && !state.UpdateEnvFromMetadata ||
		ready == nil || ready.Status != corev1.ConditionTrue {
		return 0, false
	}
	took := ready.LastTransitionTime.Sub(state.UpdateTimestamp.Time)
	return took, took > 0
}
