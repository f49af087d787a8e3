package pub

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// Counts are the pods that a budget guards, as far as the status needs them. An event of one pod changes them in
// constant time. The zero value has no pods, and is of a budget without groups. Counts are not safe for concurrent use.
type Counts struct {
	// budget names the groups of the pods; nil where it counts pods.
	budget    *Budget
	pods      map[string]observation
	active    int
	available int
}

// observation is what the status needs of a pod.
type observation struct {
	active, available bool
	// group of the pod; empty where the budget counts pods.
	group string
	// updated is when an update in place was written last, and started when a container started last, in seconds. They are
	// zero for a pod that is not available.
	updated, started int64
}

// Count counts pods that the budget guards.
func (b Budget) Count(pods []*corev1.Pod, p Policy) *Counts {
	c := &Counts{budget: &b, pods: make(map[string]observation, len(pods))}
	for _, pod := range pods {
		c.Set(pod, p)
	}
	return c
}

// Set counts a pod as it is now, and reports whether a status may change because of it.
func (c *Counts) Set(pod *corev1.Pod, p Policy) (changed bool) {
	was, ok := c.pods[pod.Name]
	is := observe(pod, p)
	if c.budget != nil {
		is.group = c.budget.GroupOf(pod)
	}
	if ok && was == is {
		return false
	}
	c.add(was, -1)
	c.add(is, 1)
	if c.pods == nil {
		c.pods = map[string]observation{}
	}
	c.pods[pod.Name] = is
	return true
}

// Remove removes a pod that is gone or no longer guarded, and reports whether it was counted.
func (c *Counts) Remove(pod string) bool {
	was, ok := c.pods[pod]
	c.add(was, -1)
	delete(c.pods, pod)
	return ok
}

func (c *Counts) add(o observation, sign int) {
	if o.active {
		c.active += sign
	}
	if o.available {
		c.available += sign
	}
}

// Active is the number of pods that are neither finished nor terminating.
func (c *Counts) Active() int {
	if c == nil {
		return 0
	}
	return c.active
}

// find returns what was observed of a pod, and reports whether the pod is counted.
func (c *Counts) find(pod string) (observation, bool) {
	if c == nil {
		return observation{}, false
	}
	o, counted := c.pods[pod]
	return o, counted
}

func observe(pod *corev1.Pod, p Policy) observation {
	o := observation{active: Active(pod)}
	o.available = o.active && Available(pod, p)
	if o.available {
		o.updated = lastUpdate(pod)
	}
	if o.updated != 0 {
		o.started = lastStart(pod)
	}
	return o
}

// lastUpdate is when an update in place of a pod was written last, by the annotations of that write; zero for never.
func lastUpdate(pod *corev1.Pod) int64 {
	var last time.Time
	take := func(s *kruise.InPlaceUpdateState) {
		last = later(last, s.UpdateTimestamp.Time)
		for _, batch := range s.ContainerBatchesRecord {
			last = later(last, batch.Timestamp.Time)
		}
	}
	if state, err := inplace.StateOf(pod, nil); err == nil && state != nil {
		take(state)
	}
	if text, ok := pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey]; ok {
		states, _ := sidecarStates(text)
		for _, state := range states {
			take(&state)
		}
	}
	if last.IsZero() {
		return 0
	}
	return last.Unix()
}

// lastStart is when a container of a pod started last.
func lastStart(pod *corev1.Pod) int64 {
	var last time.Time
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if running := list[i].State.Running; running != nil {
				last = later(last, running.StartedAt.Time)
			}
		}
	}
	return last.Unix()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
