package explain

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/pub"
)

// NotReady returns why a pod is not ready: nothing for a pod that is.
func NotReady(pod *corev1.Pod) []string {
	var reasons []string
	if pod.DeletionTimestamp != nil {
		reasons = append(reasons, "terminates since "+pod.DeletionTimestamp.UTC().Format("15:04:05")+finalizers(pod))
	}
	if ready := lifecycle.ConditionOf(pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
		return append(reasons, marked(pod)...)
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		reasons = append(reasons, fmt.Sprintf("not scheduled: %s: %s", c.Reason, c.Message))
	}
	reasons = append(reasons, containers(pod)...)
	for _, gate := range pod.Spec.ReadinessGates {
		if c := lifecycle.ConditionOf(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			reasons = append(reasons, closed(pod, gate.ConditionType, c))
		}
	}
	if len(reasons) == 0 && pod.Status.Reason+pod.Status.Message != "" {
		reasons = append(reasons, strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))
	}
	if len(reasons) == 0 {
		reasons = append(reasons, fmt.Sprintf("phase %s, and the kubelet has not reported more", pod.Status.Phase))
	}
	return append(reasons, marked(pod)...)
}

// containers returns why containers are not ready.
func containers(pod *corev1.Pod) []string {
	var reasons []string
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Waiting != nil || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			reasons = append(reasons, "init "+container(s))
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if !s.Ready {
			reasons = append(reasons, container(s))
		}
	}
	return reasons
}

func finalizers(pod *corev1.Pod) string {
	if len(pod.Finalizers) == 0 {
		return ""
	}
	return ", finalizers " + strings.Join(pod.Finalizers, ", ")
}

// marked reports that a label takes the pod out of the count of a budget.
func marked(pod *corev1.Pod) []string {
	if !pub.MarkedUnavailable(pod) {
		return nil
	}
	return []string{"a label marks the pod unavailable for budgets"}
}

// container returns why a container is not ready.
func container(s corev1.ContainerStatus) string {
	text := "container " + s.Name
	switch {
	case s.State.Waiting != nil:
		text += fmt.Sprintf(" waits: %s %s", s.State.Waiting.Reason, s.State.Waiting.Message)
	case s.State.Terminated != nil:
		text += fmt.Sprintf(" terminated: %s, exit code %d", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
	case s.Started != nil && !*s.Started:
		text += " runs, its startup probe has not succeeded"
	default:
		text += " runs, its readiness probe fails"
	}
	if s.RestartCount > 0 {
		text += fmt.Sprintf(" (%d restarts)", s.RestartCount)
	}
	return strings.TrimSpace(text)
}

// closed returns why a readiness gate of a pod is closed.
func closed(pod *corev1.Pod, gate corev1.PodConditionType, c *corev1.PodCondition) string {
	text := "readiness gate " + string(gate)
	switch {
	case c == nil:
		return text + " has no condition: is its controller installed?"
	case gate == kruise.InPlaceUpdateReady:
		if _, why := inplace.Completed(pod, policy()); why.Text != "" {
			return text + " is closed for an update in place: " + why.Text
		}
		return text + " is closed for an update in place"
	case gate == kruise.KruisePodReadyConditionType:
		var entries []kruise.NotReadyEntry
		if json.Unmarshal([]byte(c.Message), &entries) == nil && len(entries) > 0 {
			var by []string
			for _, e := range entries {
				by = append(by, e.UserAgent+"/"+e.Key)
			}
			return text + " is held by " + strings.Join(by, ", ")
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s is %s: %s %s", text, c.Status, c.Reason, c.Message))
}

// policy of updates in place, as a manager with node daemons has it.
func policy() inplace.Policy { return inplace.Installation{EnvDaemon: true}.Policy() }
