package standin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is what a kubelet reports of a pod, without the conditions of other writers.
func (s *sandbox) status(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	status := &corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: s.written.StartTime, ObservedGeneration: pod.Generation,
	}
	if status.StartTime == nil {
		status.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	status.PodIP, status.PodIPs = s.ip, []corev1.PodIP{{IP: s.ip}}
	ready := !s.ended
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		c := s.containers[spec.Name]
		if c == nil { // deleted before it was created
			c = &container{restarts: -1, image: spec.Image}
		}
		if c.restarts < 0 {
			status.Phase = corev1.PodPending
		}
		ready = ready && c.running
		status.ContainerStatuses = append(status.ContainerStatuses, c.status(spec.Name, pod, s.ended, now))
	}
	if s.ended {
		status.Phase = corev1.PodSucceeded
	}
	status.Conditions = []corev1.PodCondition{
		s.condition(corev1.PodInitialized, true, now),
		s.condition(corev1.ContainersReady, ready, now),
	}
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && isTrue(pod, gate.ConditionType)
	}
	status.Conditions = append(status.Conditions, s.condition(corev1.PodReady, ready, now))
	return status
}

// status of a container that runs, has ended or starts. All containers of a pod that has ended have.
func (c *container) status(name string, pod *corev1.Pod, ended bool, now time.Time) corev1.ContainerStatus {
	is := corev1.ContainerStatus{Name: name, Image: c.image, RestartCount: max(c.restarts, 0)}
	if c.restarts >= 0 {
		is.ImageID = "sha256:" + strings.ReplaceAll(c.image, ":", "-")
		is.ContainerID = fmt.Sprintf("standin://%s-%s-%d", pod.UID, name, c.restarts)
	}
	running := c.running && !ended
	is.Ready, is.Started = running, &running
	switch {
	case running:
		is.State.Running = &corev1.ContainerStateRunning{StartedAt: c.since}
	case c.restarts < 0:
		is.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	default:
		at := c.since
		if c.running {
			at = metav1.NewTime(now)
		}
		is.State.Terminated = &corev1.ContainerStateTerminated{
			Reason: "Completed", FinishedAt: at, ContainerID: is.ContainerID,
		}
	}
	return is
}

// condition keeps the time of the last transition where there is none.
func (s *sandbox) condition(t corev1.PodConditionType, is bool, now time.Time) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: t, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if is {
		c.Status = corev1.ConditionTrue
	}
	at := slices.IndexFunc(s.written.Conditions, func(was corev1.PodCondition) bool { return was.Type == t })
	if at >= 0 && s.written.Conditions[at].Status == c.Status {
		return s.written.Conditions[at]
	}
	return c
}
