package forecast

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// nodes are the scheduler and the kubelets of a simulation, with the daemon of the project where pods show that it is
// installed.
type nodes struct {
	now    func() time.Time
	pace   Pace
	names  []string
	policy inplace.Policy
	// opens are the readiness gates that another controller opens for new pods.
	opens map[corev1.PodConditionType]bool
	// daemon means that containers restart when their environment changes.
	daemon bool
	// broken are images that no node can run.
	broken map[string]bool
	// owns reports whether a pod is the workload's. Others stay as they are.
	owns func(*corev1.Pod) bool

	pods map[types.UID]*sandbox
	err  error
}

// sandbox is what runs of a pod.
type sandbox struct {
	// images, env and restarts by container.
	images   map[string]string
	env      map[string]uint64
	restarts map[string]int32
	// ready is when the containers are ready; zero for a pod whose containers stay as they are.
	ready time.Time
	// fresh means that no container has run yet, and stuck that the pod is not expected to become ready as it is.
	fresh, stuck bool
	// ends is when the deleted pod is gone; zero for a pod that stays.
	ends time.Time
	// calm is the pod that needs nothing until it changes.
	calm *corev1.Pod
}

// patience is how many times the usual time a pod may take to become ready. One that takes longer is not expected to.
const patience = 10

// load takes a pod as it is at the begin.
func (n *nodes) load(pod *corev1.Pod) {
	s := newSandbox()
	n.pods[pod.UID] = s
	if pod.DeletionTimestamp != nil {
		s.ends = later(n.now(), pod.DeletionTimestamp.Time)
		return
	}
	started, pace := pod.CreationTimestamp.Time, n.pace.Start
	state, _ := inplace.StateOf(pod, nil) // what cannot be read is reported by the reconciler
	if state != nil {
		started, pace = changedAt(state), n.pace.Restart
	}
	_, s.stuck = workload.Stuck(pod)
	s.fresh = len(pod.Status.ContainerStatuses) == 0
	completed, _ := inplace.Completed(pod, n.policy)
	restarts := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s.images[c.Name] = c.Image
		if hash, err := inplace.EnvHash(c, pod.Labels, pod.Annotations); err == nil {
			s.env[c.Name] = hash
		}
		status := statusOf(pod, c.Name)
		if status == nil {
			continue
		}
		s.restarts[c.Name] = status.RestartCount
		if was, changed := lastOf(state, c.Name); changed && !completed && !s.stuck && was.ImageID == status.ImageID {
			s.restarts[c.Name]++ // its node is about to restart the container
			restarts = true
		}
	}
	if isTrue(pod, corev1.ContainersReady) && !restarts {
		return
	}
	if s.stuck = s.stuck || n.now().Sub(started) > patience*time.Duration(pace); !s.stuck {
		s.ready = later(n.now(), started.Add(time.Duration(pace)))
	}
}

// changedAt is when the images of a pod were changed that is updated in place.
func changedAt(state *kruise.InPlaceUpdateState) time.Time {
	if n := len(state.ContainerBatchesRecord); n > 0 {
		return state.ContainerBatchesRecord[n-1].Timestamp.Time
	}
	return state.UpdateTimestamp.Time
}

func newSandbox() *sandbox {
	return &sandbox{images: map[string]string{}, env: map[string]uint64{}, restarts: map[string]int32{}}
}

// lastOf is what ran in a container before its update in place.
func lastOf(state *kruise.InPlaceUpdateState, container string) (kruise.InPlaceUpdateContainerStatus, bool) {
	if state == nil {
		return kruise.InPlaceUpdateContainerStatus{}, false
	}
	was, ok := state.LastContainerStatuses[container]
	return was, ok
}

// step is what the scheduler or the node does with a pod.
func (n *nodes) step(pod *corev1.Pod) *corev1.Pod {
	if !n.owns(pod) {
		return pod
	}
	s := n.pods[pod.UID]
	if s == nil {
		s = newSandbox()
		s.fresh, s.ready = true, n.now().Add(time.Duration(n.pace.Start))
		n.pods[pod.UID] = s
	}
	switch {
	case s.calm == pod:
		return pod
	case pod.DeletionTimestamp != nil:
		return n.end(pod, s)
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return pod
	case pod.Spec.NodeName == "":
		return n.bind(pod, s)
	}
	after := pod.DeepCopy()
	n.run(after, s)
	if s.ready.IsZero() {
		s.calm = pod
	}
	return after
}

// end ends a deleted pod when it is time.
func (n *nodes) end(pod *corev1.Pod, s *sandbox) *corev1.Pod {
	if s.ends.IsZero() {
		s.ends = n.now().Add(time.Duration(n.pace.End))
	}
	if n.now().Before(s.ends) {
		return pod
	}
	return nil
}

// bind puts a pod on the node that it asks for, or on the one with the fewest pods.
func (n *nodes) bind(pod *corev1.Pod, s *sandbox) *corev1.Pod {
	if s.stuck {
		return pod
	}
	after := pod.DeepCopy()
	if after.Spec.NodeName = cmp.Or(eligible.NodeOf(pod), n.names[len(n.pods)%len(n.names)]); after.Spec.NodeName == "" {
		return pod
	}
	n.set(after, corev1.PodScheduled, true)
	n.set(after, corev1.ContainersReady, false)
	n.set(after, corev1.PodReady, false)
	if lifecycle.HasGate(after, kruise.KruisePodReadyConditionType) {
		n.set(after, kruise.KruisePodReadyConditionType, true)
	}
	return after
}

// run starts and restarts containers, and reports.
func (n *nodes) run(pod *corev1.Pod, s *sandbox) {
	for i := range pod.Spec.Containers {
		n.check(pod, &pod.Spec.Containers[i], s)
	}
	if !s.ready.IsZero() && !n.now().Before(s.ready) {
		s.ready, s.fresh = time.Time{}, false
		pod.Status.Phase = corev1.PodRunning
		ready := true
		for i := range pod.Spec.Containers {
			ready = n.started(pod, &pod.Spec.Containers[i], s) && ready
		}
		n.set(pod, corev1.ContainersReady, ready)
		for _, gate := range pod.Spec.ReadinessGates {
			if n.opens[gate.ConditionType] && lifecycle.ConditionOf(pod, gate.ConditionType) == nil {
				n.set(pod, gate.ConditionType, true)
			}
		}
		n.publish(pod, s)
	}
	if !s.ready.IsZero() {
		n.set(pod, corev1.ContainersReady, false)
	}
	ready := isTrue(pod, corev1.ContainersReady)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && isTrue(pod, gate.ConditionType)
	}
	n.set(pod, corev1.PodReady, ready)
}

// next is when a pod starts, or ends; zero for never.
func (n *nodes) next() (at time.Time) {
	for _, s := range n.pods {
		for _, t := range []time.Time{s.ready, s.ends} {
			if t.After(n.now()) && (at.IsZero() || t.Before(at)) {
				at = t
			}
		}
	}
	return at
}

// set sets a condition, with the time of the last transition.
func (n *nodes) set(pod *corev1.Pod, t corev1.PodConditionType, is bool) {
	c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(n.now())}
	if is {
		c.Status = corev1.ConditionTrue
	}
	at := slices.IndexFunc(pod.Status.Conditions, func(have corev1.PodCondition) bool { return have.Type == t })
	switch {
	case at < 0:
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	case pod.Status.Conditions[at].Status != c.Status:
		pod.Status.Conditions[at] = c
	}
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := lifecycle.ConditionOf(pod, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// later returns the later of two times, in whole seconds.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		a = b
	}
	return a.Add(time.Second - 1).Truncate(time.Second)
}
