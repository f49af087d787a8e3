package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
)

// check ends a container whose image or environment has changed, and changes resources.
func (n *nodes) check(pod *corev1.Pod, c *corev1.Container, s *sandbox) {
	status := statusOf(pod, c.Name)
	if status != nil && status.Resources != nil {
		status.Resources = c.Resources.DeepCopy()
	}
	if s.fresh {
		return
	}
	env, err := inplace.EnvHash(c, pod.Labels, pod.Annotations)
	if err != nil {
		n.err = cmp.Or(n.err, err)
		return
	}
	gate := lifecycle.ConditionOf(pod, kruise.InPlaceUpdateReady)
	outdated := n.daemon && s.env[c.Name] != env && gate != nil && gate.Status == corev1.ConditionFalse
	if s.images[c.Name] == c.Image && !outdated {
		return
	}
	s.images[c.Name], s.env[c.Name], s.stuck = c.Image, env, false
	s.restarts[c.Name]++
	if n.set(pod, corev1.ContainersReady, false); status != nil {
		status.Ready = false
	}
	if n.broken[c.Image] {
		return
	}
	if s.ready.IsZero() || s.ready.Before(n.now().Add(time.Duration(n.pace.Restart))) {
		s.ready = n.now().Add(time.Duration(n.pace.Restart))
	}
}

// started reports a container that runs what the pod asks for, or that cannot.
func (n *nodes) started(pod *corev1.Pod, c *corev1.Container, s *sandbox) (ready bool) {
	status := statusOf(pod, c.Name)
	if status == nil {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Resources: c.Resources.DeepCopy(),
		})
		status = &pod.Status.ContainerStatuses[len(pod.Status.ContainerStatuses)-1]
	}
	if s.images[c.Name] = c.Image; n.broken[c.Image] {
		status.Ready, status.State = false, corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
		}
		return false
	}
	if status.Ready && status.RestartCount == s.restarts[c.Name] {
		return true
	}
	if status.Image != c.Image || status.ContainerID == "" || status.RestartCount != s.restarts[c.Name] {
		status.Image, status.ImageID = c.Image, "forecast://"+c.Image
		status.RestartCount = s.restarts[c.Name]
		status.ContainerID = fmt.Sprintf("forecast://%s-%s-%d", pod.UID, c.Name, status.RestartCount)
	}
	started := true
	status.Ready, status.Started = true, &started
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(n.now())}}
	return true
}

// publish writes what the daemon of the node writes about containers that have started.
func (n *nodes) publish(pod *corev1.Pod, s *sandbox) {
	if !n.daemon {
		return
	}
	var all kruise.RuntimeContainerMetaSet
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := statusOf(pod, c.Name)
		if status == nil || status.ContainerID == "" {
			continue
		}
		meta := kruise.RuntimeContainerMeta{
			Name: c.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount,
		}
		plain, _, err := inplace.PlainHashes(c)
		if err == nil {
			s.env[c.Name], err = inplace.EnvHash(c, pod.Labels, pod.Annotations)
		}
		n.err = cmp.Or(n.err, err)
		meta.Hashes.PlainHash, meta.Hashes.ExtractedEnvFromMetadataHash = plain, s.env[c.Name]
		all.Containers = append(all.Containers, meta)
	}
	data, err := json.Marshal(all)
	if n.err = cmp.Or(n.err, err); err != nil {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[kruise.RuntimeContainerMetaKey] = string(data)
}

// brokenImages are the images with which a container of a pod cannot run, and none of another pod runs.
func brokenImages(pods []*corev1.Pod) map[string]bool {
	broken, running := map[string]bool{}, map[string]bool{}
	for _, pod := range pods {
		_, stuck := workload.Stuck(pod)
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			switch status := statusOf(pod, c.Name); {
			case status == nil:
			case status.Ready:
				running[c.Image] = true
			case stuck:
				broken[c.Image] = true
			}
		}
	}
	maps.DeleteFunc(broken, func(image string, _ bool) bool { return running[image] })
	return broken
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
