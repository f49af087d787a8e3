package inplace_test

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// kubelet is a small node with one pod. What it has done is only in the pod's status, and what its containers were
// started with here.
type kubelet struct {
	pod    *corev1.Pod // as stored
	runs   map[string]ran
	daemon bool
	// crashes are the restarts that no write caused, by container.
	crashes map[string]int32
	// names is how the runtime tells images.
	names string
}

// ran is what a container was started with.
type ran struct {
	image  string
	env    map[string]string
	hashes kruise.RuntimeContainerHashes
}

func start(pod *corev1.Pod, daemon bool, names string) (*kubelet, error) {
	k := &kubelet{pod: pod, runs: map[string]ran{}, crashes: map[string]int32{}, daemon: daemon, names: names}
	pod.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: pod.Spec.Containers[i].Name, RestartCount: -1,
		})
		if err := k.restart(i, noon()); err != nil {
			return nil, err
		}
		pod.Status.ContainerStatuses[i].Ready = true
	}
	return k, k.tell(true)
}

// environment is what labels and annotations give.
func (k *kubelet) environment(i int) map[string]string {
	env := map[string]string{}
	for _, e := range k.pod.Spec.Containers[i].Env {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			continue
		}
		path := e.ValueFrom.FieldRef.FieldPath
		key := path[strings.Index(path, "'")+1 : len(path)-2]
		if strings.Contains(path, "labels") {
			env[e.Name] = k.pod.Labels[key]
		} else {
			env[e.Name] = k.pod.Annotations[key]
		}
	}
	return env
}

// imageID is the same for the tags of one image.
func imageID(image string) string {
	image = strings.TrimSuffix(strings.TrimPrefix(image, "docker.io/library/"), "b")
	return "docker.io/library/app@sha256:" + strings.TrimPrefix(image, "app:")
}

func (k *kubelet) restart(i int, now time.Time) error {
	c, s := &k.pod.Spec.Containers[i], &k.pod.Status.ContainerStatuses[i]
	env := k.environment(i)
	plain, _, err := inplace.PlainHashes(c)
	if err != nil {
		return err
	}
	hash, err := inplace.EnvHash(c, k.pod.Labels, k.pod.Annotations)
	if err != nil {
		return err
	}
	k.runs[c.Name] = ran{c.Image, env, kruise.RuntimeContainerHashes{PlainHash: plain, ExtractedEnvFromMetadataHash: hash}}
	s.RestartCount++
	s.ContainerID = fmt.Sprintf("containerd://%s-%d", c.Name, s.RestartCount)
	s.ImageID, s.Ready, s.Resources = imageID(c.Image), false, c.Resources.DeepCopy()
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{
		StartedAt: metav1.NewTime(now.Truncate(time.Second)),
	}}
	switch k.names {
	case "whole":
		s.Image = "docker.io/library/" + strings.TrimPrefix(c.Image, "docker.io/library/")
	case "digest":
		s.Image = strings.ReplaceAll(s.ImageID, "docker.io/library/app@", "")
	default:
		s.Image = c.Image
	}
	return nil
}

// due reports whether the node has something left to do with a container, and whether that stops it.
func (k *kubelet) due(i int) (work, stops bool) {
	c, s := &k.pod.Spec.Containers[i], &k.pod.Status.ContainerStatuses[i]
	if c.Image != k.runs[c.Name].image {
		return true, true
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		limit, had := c.Resources.Limits[name], s.Resources.Limits[name]
		request, requested := c.Resources.Requests[name], s.Resources.Requests[name]
		if limit.Cmp(had) == 0 && request.Cmp(requested) == 0 {
			continue
		}
		work = true
		for _, p := range c.ResizePolicy {
			stops = stops || p.ResourceName == name && p.RestartPolicy == corev1.RestartContainer
		}
	}
	return work, stops
}

// fedLate reports whether a container runs with the environment from before.
func (k *kubelet) fedLate(i int) bool {
	return !maps.Equal(k.runs[k.pod.Spec.Containers[i].Name].env, k.environment(i))
}

// sync does with one container what is due; stopped reports whether it stopped it.
func (k *kubelet) sync(i int, now time.Time) (stopped bool, err error) {
	s := &k.pod.Status.ContainerStatuses[i]
	work, stops := k.due(i)
	switch {
	case stops && s.State.Running != nil && len(s.Name)%2 == 0:
		s.Ready, s.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		return true, nil // and it starts the new one later
	case stops || s.State.Running == nil:
		stopped = s.State.Running != nil
		return stopped, k.restart(i, now)
	case work:
		s.Resources = k.pod.Spec.Containers[i].Resources.DeepCopy()
	case k.daemon && k.fedLate(i) && condition(k.pod, kruise.InPlaceUpdateReady).Status == corev1.ConditionFalse:
		return true, k.restart(i, now) // by the daemon, which waits for the pod to be out of traffic
	default:
		s.Ready = true
	}
	return false, nil
}

// crash starts a container again. If something stops it anyway, that restart serves for both.
func (k *kubelet) crash(i int, now time.Time) error {
	name := k.pod.Spec.Containers[i].Name
	if k.pod.Status.ContainerStatuses[i].State.Running == nil {
		return nil
	}
	if _, stops := k.due(i); !stops && (!k.daemon || !k.fedLate(i)) {
		k.crashes[name]++
	}
	return k.restart(i, now)
}

// tell writes the pod's conditions and, unless it is slow, what the daemon knows.
func (k *kubelet) tell(daemon bool) error {
	containers := corev1.ConditionTrue
	set := kruise.RuntimeContainerMetaSet{}
	for _, s := range k.pod.Status.ContainerStatuses {
		if !s.Ready {
			containers = corev1.ConditionFalse
		}
		set.Containers = append(set.Containers, kruise.RuntimeContainerMeta{
			Name: s.Name, ContainerID: s.ContainerID, RestartCount: s.RestartCount, Hashes: k.runs[s.Name].hashes,
		})
	}
	ready := containers
	for _, gate := range k.pod.Spec.ReadinessGates {
		if condition(k.pod, gate.ConditionType).Status != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	k.set(corev1.ContainersReady, containers)
	k.set(corev1.PodReady, ready)
	if k.daemon && daemon {
		metav1.SetMetaDataAnnotation(&k.pod.ObjectMeta, kruise.RuntimeContainerMetaKey, jsonOf(set))
	}
	return nil
}

func (k *kubelet) set(kind corev1.PodConditionType, status corev1.ConditionStatus) {
	if c := condition(k.pod, kind); c.Status != "" {
		c.Status = status
		return
	}
	k.pod.Status.Conditions = append(k.pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status})
}

// done says what the node has not done yet of what is stored; empty for all done.
func (k *kubelet) undone() string {
	for i := range k.pod.Spec.Containers {
		name := k.pod.Spec.Containers[i].Name
		if work, _ := k.due(i); work {
			return name + " does not run what is written"
		}
		if k.daemon && k.fedLate(i) {
			return name + " runs with the environment from before"
		}
	}
	return ""
}
