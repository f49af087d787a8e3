package simulation

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// nodes are all nodes with their kubelets.
type nodes struct {
	*world
	runs map[types.UID]map[string]*run
	// calm are the pods, as they are, with which a node has nothing to do until they change.
	calm map[types.UID]*corev1.Pod
	// daemon tells what the containers run, and restarts those whose environment changed.
	daemon bool
}

// run is one container as its node knows it.
type run struct {
	up bool
	// next is the tick of what comes next: the start of one that is down, readiness of one that is up.
	next  int
	image string
	// wanted is the image that one that is down will start with: what the node saw when it began to.
	wanted   string
	id       string
	restarts int32
	env      uint64
	hashes   kruise.RuntimeContainerHashes
}

// step is one look of the kubelet at one of its pods.
func (n *nodes) step(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || n.calm[pod.UID] == pod {
		return
	}
	if pod.DeletionTimestamp != nil {
		if n.tick >= n.endOf(pod) {
			n.server.remove("node", pod)
		}
		return
	}
	runs := n.runs[pod.UID]
	if runs == nil {
		runs = map[string]*run{}
		n.runs[pod.UID] = runs
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if runs[c.Name] == nil {
			runs[c.Name] = &run{next: n.tick + n.delay(), wanted: c.Image}
		}
		n.drive(pod, c, runs[c.Name])
	}
	after := pod.DeepCopy()
	n.tell(after, runs)
	n.must(n.server.replace(apiWrite{by: "node", verb: "status", before: pod, after: after}))
	if n.daemon {
		n.report(n.server.pod(pod.Name), runs)
	}
	for _, r := range runs {
		if r.next > n.tick {
			return
		}
	}
	if n.server.pod(pod.Name) == pod {
		n.calm[pod.UID] = pod
	}
}

// endOf is when the containers of a pod that is deleted have ended.
func (n *nodes) endOf(pod *corev1.Pod) int {
	return int(pod.DeletionTimestamp.Sub(epoch).Seconds()) + n.settings.end
}

// drive does what comes next with a container.
func (n *nodes) drive(pod *corev1.Pod, c *corev1.Container, r *run) {
	env, err := inplace.EnvHash(c, pod.Labels, pod.Annotations)
	n.check(err)
	switch {
	case r.up && r.image != c.Image:
		n.rules.restarting(pod)
		r.up, r.wanted, r.next = false, c.Image, n.tick+n.delay()
	case r.up && n.daemon && r.env != env && conditionOf(pod, kruise.InPlaceUpdateReady) == corev1.ConditionFalse:
		r.up, r.wanted, r.next = false, c.Image, n.tick+n.delay()
	case !r.up && missing(r.wanted):
		r.wanted = c.Image // it looks again each time that it tries
	case !r.up && n.tick >= r.next:
		if r.id != "" {
			r.restarts++
		}
		r.up, r.image, r.id, r.env = true, r.wanted, fmt.Sprintf("containerd://%s-%d", pod.UID, r.restarts), env
		started := *c
		started.Image = r.image
		r.hashes.PlainHash, _, err = inplace.PlainHashes(&started)
		n.check(err)
		r.hashes.ExtractedEnvFromMetadataHash = env
		r.next = n.tick + n.delay()
	}
}

// crash lets the containers of a pod end by themselves.
func (n *nodes) crash(pod *corev1.Pod) {
	n.tale.say("node", "%s crashes", pod.Name)
	n.rules.crashes[pod.UID]++
	delete(n.calm, pod.UID)
	for i := range pod.Spec.Containers {
		if r := n.runs[pod.UID][pod.Spec.Containers[i].Name]; r != nil && r.up {
			r.up, r.wanted, r.next = false, r.image, n.tick+n.delay()
		}
	}
}

// tell writes the status of a pod.
func (n *nodes) tell(pod *corev1.Pod, runs map[string]*run) {
	now := n.now()
	ready, started := true, true
	before := pod.Status.ContainerStatuses
	pod.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		r := runs[c.Name]
		s := corev1.ContainerStatus{Name: c.Name, Image: r.image, ContainerID: r.id, RestartCount: r.restarts, Resources: c.Resources.DeepCopy()}
		if r.image != "" {
			s.ImageID = imageID(r.image)
		}
		s.Ready = r.up && n.tick >= r.next && !broken(r.image)
		switch {
		case r.up:
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
			if i < len(before) && before[i].ContainerID == r.id && before[i].State.Running != nil {
				s.State.Running = before[i].State.Running
			}
		case missing(r.wanted):
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}
		default:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		}
		if s.Image == "" {
			s.Image = c.Image
		}
		ready, started = ready && s.Ready, started && r.id != ""
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

// imageID is the same for images that differ in nothing but their name.
func imageID(image string) string {
	if len(image) > 0 && image[len(image)-1] == '\'' {
		return "id-of-" + image[:len(image)-1]
	}
	return "id-of-" + image
}

// report is what the daemon of the node writes.
func (n *nodes) report(pod *corev1.Pod, runs map[string]*run) {
	var all kruise.RuntimeContainerMetaSet
	for i := range pod.Spec.Containers {
		if r := runs[pod.Spec.Containers[i].Name]; r.id != "" {
			all.Containers = append(all.Containers, kruise.RuntimeContainerMeta{
				Name: pod.Spec.Containers[i].Name, ContainerID: r.id, RestartCount: r.restarts, Hashes: r.hashes,
			})
		}
	}
	data, err := json.Marshal(all)
	n.check(err)
	if pod.Annotations[kruise.RuntimeContainerMetaKey] == string(data) || len(all.Containers) == 0 {
		return
	}
	after := pod.DeepCopy()
	after.Annotations[kruise.RuntimeContainerMetaKey] = string(data)
	n.must(n.server.replace(apiWrite{by: "daemon", verb: "report", before: pod, after: after}))
}

// schedule puts a pod on a node.
func (w *world) schedule(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || w.random.IntN(w.settings.slow+1) > 0 {
		return
	}
	after := pod.DeepCopy()
	after.Spec.NodeName = fmt.Sprintf("node-%d", w.random.IntN(w.settings.nodes))
	setCondition(after, corev1.PodScheduled, true, w.now())
	if hasGate(after, kruise.KruisePodReadyConditionType) {
		setCondition(after, kruise.KruisePodReadyConditionType, true, w.now())
	}
	w.must(w.server.replace(apiWrite{by: "scheduler", verb: "bind", before: pod, after: after}))
}

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
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != t {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime, c.Reason, c.Message = status, now, "", ""
		}
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: status, LastTransitionTime: now})
}
