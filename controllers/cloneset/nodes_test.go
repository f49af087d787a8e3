package cloneset_test

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// nodes are the kubelets. A container takes time to start, to become ready and to end.
type nodes struct {
	*world
	runs map[types.UID]map[string]*run
	// calm are the pods that need nothing until they change.
	calm map[types.UID]*corev1.Pod
}

// run is one container as its node sees it.
type run struct {
	up bool
	// next is the tick of what comes next: the start of a container that is down, readiness of one that is up.
	next  int
	image string
	// wanted is the image that a container that is down starts with: what its node saw when it began to.
	wanted   string
	id       string
	restarts int32
	env      uint64
	hashes   kruise.RuntimeContainerHashes
}

// step is what the node of a pod does.
func (n *nodes) step(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName == "" || n.calm[pod.UID] == pod {
		return pod
	}
	if pod.DeletionTimestamp != nil {
		if n.now().Sub(pod.DeletionTimestamp.Time).Seconds() >= float64(n.end) {
			return nil
		}
		return pod
	}
	runs := n.runs[pod.UID]
	if runs == nil {
		runs = map[string]*run{}
		n.runs[pod.UID] = runs
	}
	waits := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if runs[c.Name] == nil {
			runs[c.Name] = &run{next: n.tick + n.wait(), wanted: c.Image}
		}
		n.drive(pod, c, runs[c.Name])
		waits = waits || runs[c.Name].next > n.tick
	}
	after := pod.DeepCopy()
	n.report(after, runs)
	if n.daemon {
		n.publish(after, runs)
	}
	if !waits {
		n.calm[pod.UID] = pod
	}
	return after
}

// drive does what comes next with a container.
func (n *nodes) drive(pod *corev1.Pod, c *corev1.Container, r *run) {
	env, err := inplace.EnvHash(c, pod.Labels, pod.Annotations)
	if err != nil {
		n.Fatal(err)
	}
	outdated := n.daemon && r.env != env && conditionOf(pod, kruise.InPlaceUpdateReady) == corev1.ConditionFalse
	switch {
	case r.up && r.image != c.Image:
		n.rules.restarts(pod)
		r.up, r.wanted, r.next = false, c.Image, n.tick+n.wait()
	case r.up && outdated: // the daemon restarts the container
		r.up, r.wanted, r.next = false, c.Image, n.tick+n.wait()
	case !r.up && missing(r.wanted):
		r.wanted = c.Image // the kubelet tries again
	case !r.up && n.tick >= r.next:
		if r.id != "" {
			r.restarts++
		}
		r.up, r.image, r.env = true, r.wanted, env
		r.id = fmt.Sprintf("containerd://%s-%d", pod.UID, r.restarts)
		started := *c
		started.Image = r.image
		if r.hashes.PlainHash, _, err = inplace.PlainHashes(&started); err != nil {
			n.Fatal(err)
		}
		r.hashes.ExtractedEnvFromMetadataHash = env
		r.next = n.tick + n.wait()
	}
}

// crash ends the containers of a pod.
func (n *nodes) crash(pod *corev1.Pod) {
	n.tale.say("node", pod.Name+" crashes")
	n.rules.crashes[pod.UID]++
	delete(n.calm, pod.UID)
	for _, r := range n.runs[pod.UID] {
		if r.up {
			r.up, r.wanted, r.next = false, r.image, n.tick+n.wait()
		}
	}
}

// report makes the status of a pod.
func (n *nodes) report(pod *corev1.Pod, runs map[string]*run) {
	now := metav1.NewTime(n.now())
	ready, started, before := true, true, pod.Status.ContainerStatuses
	pod.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		s := n.status(&pod.Spec.Containers[i], runs[pod.Spec.Containers[i].Name])
		same := i < len(before) && before[i].ContainerID == s.ContainerID
		if same && before[i].State.Running != nil && s.State.Running != nil {
			s.State.Running = before[i].State.Running
		}
		ready, started = ready && s.Ready, started && s.ContainerID != ""
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
	}
	if started {
		pod.Status.Phase = corev1.PodRunning
	}
	setCondition(pod, corev1.ContainersReady, ready, now)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && conditionOf(pod, gate.ConditionType) == corev1.ConditionTrue
	}
	setCondition(pod, corev1.PodReady, ready, now)
}

func (n *nodes) status(c *corev1.Container, r *run) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.Name, Image: r.image, ContainerID: r.id, RestartCount: r.restarts, Resources: c.Resources.DeepCopy(),
		Ready: r.up && n.tick >= r.next && !broken(r.image),
	}
	if r.image != "" {
		s.ImageID = "id-of-" + strings.TrimSuffix(r.image, "'")
	} else {
		s.Image = c.Image
	}
	switch {
	case r.up:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(n.now())}
	case missing(r.wanted):
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	return s
}

// publish writes what the daemon of the node writes.
func (n *nodes) publish(pod *corev1.Pod, runs map[string]*run) {
	var all kruise.RuntimeContainerMetaSet
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		if r := runs[name]; r.id != "" {
			all.Containers = append(all.Containers, kruise.RuntimeContainerMeta{
				Name: name, ContainerID: r.id, RestartCount: r.restarts, Hashes: r.hashes,
			})
		}
	}
	if len(all.Containers) == 0 {
		return
	}
	data, err := json.Marshal(all)
	if err != nil {
		n.Fatal(err)
	}
	pod.Annotations[kruise.RuntimeContainerMetaKey] = string(data)
}

// broken reports whether an image never becomes ready, and missing whether it does not exist. An image whose name ends
// with a quotation mark is the same as without the mark.
func broken(image string) bool  { return strings.Contains(image, ":broken") }
func missing(image string) bool { return strings.Contains(image, ":missing") }

func hasGate(pod *corev1.Pod, gate corev1.PodConditionType) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if g.ConditionType == gate {
			return true
		}
	}
	return false
}

// conditionOf is empty where the pod has no such condition.
func conditionOf(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return pod.Status.Conditions[i].Status
		}
	}
	return ""
}

func setCondition(pod *corev1.Pod, t corev1.PodConditionType, is bool, now metav1.Time) {
	c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, LastTransitionTime: now}
	if is {
		c.Status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		if have := &pod.Status.Conditions[i]; have.Type == t {
			if have.Status != c.Status {
				*have = c
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}
