package launch

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
)

// configError is the reason of a container that the kubelet cannot make because something that it refers to is missing.
const configError = "CreateContainerConfigError"

// Policy is when a container lets the next ones start. The zero value is that of the reference.
type Policy struct {
	// Started counts a container once it has started, after its startup probe and its postStart hook, and not only when it
	// is ready. A readiness probe with a long delay then delays no other container.
	Started bool
	// Keys are the annotations and variables of the pods; nil for those of OpenKruise.
	Keys *kruise.Keys
}

// held is a container with a barrier.
type held struct {
	name string
	// keys that must be in the barrier before it can start: one, or more where it was injected more than once.
	keys []key
	// level is the lowest priority among them: that is when it can start.
	level int64
	// up lets the next level start; blocked is the state of a container that lacks a key, or another object.
	up, blocked bool
}

// key is one of a barrier.
type key struct {
	text   string
	number int64
}

// keyOf is the key of a priority.
func keyOf(priority int64) string {
	return kruise.ContainerLaunchBarrierKeyPrefix + strconv.FormatInt(priority, 10)
}

// parse reads the key of a barrier. The reference writes priorities of 64 bits.
func parse(text string) (key, bool) {
	digits, ok := strings.CutPrefix(text, kruise.ContainerLaunchBarrierKeyPrefix)
	if !ok {
		return key{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return key{text, n}, err == nil
}

// heldIn returns the containers of a pod that wait for a barrier, in the order of the pod, and notes on those that only
// seem to.
func heldIn(pod *corev1.Pod, r Policy) ([]held, []note.Note) {
	var all []held
	var notes []note.Note
	barrier := BarrierName(pod.Name)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		h := held{name: c.Name}
		for j := range c.Env {
			if !r.Keys.IsName(c.Env[j].Name, (*kruise.Keys).LaunchBarrierEnvName) {
				continue
			}
			k, ok := keyIn(&c.Env[j], barrier)
			if !ok {
				notes = append(notes,
					newNote(NoteNoBarrier, c.Name, c.Env[j].Name+" does not refer to a priority in ConfigMap "+barrier))
				continue
			}
			if len(h.keys) == 0 || k.number < h.level {
				h.level = k.number
			}
			h.keys = append(h.keys, k)
		}
		if len(h.keys) == 0 {
			continue
		}
		if status := statusOf(pod, c.Name); status != nil {
			h.up = status.Ready || r.Started && status.Started != nil && *status.Started
			h.blocked = status.State.Waiting != nil && status.State.Waiting.Reason == configError
		}
		all = append(all, h)
	}
	return all, notes
}

// keyIn returns the key of a barrier that a variable refers to.
func keyIn(e *corev1.EnvVar, barrier string) (key, bool) {
	if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil || e.ValueFrom.ConfigMapKeyRef.Name != barrier {
		return key{}, false
	}
	return parse(e.ValueFrom.ConfigMapKeyRef.Key)
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container {
			return s
		}
	}
	return nil
}

// Pending returns the priorities of the containers with a barrier that are not up, in ascending order, each as often as
// there are such containers.
func Pending(pod *corev1.Pod, r Policy) []int64 {
	all, _ := heldIn(pod, r)
	return pending(all)
}

func pending(all []held) []int64 {
	var levels []int64
	for _, h := range all {
		if !h.up {
			levels = append(levels, h.level)
		}
	}
	slices.Sort(levels)
	return levels
}

// Concerns reports whether a pod may need a write, whatever its barrier holds: not while its containers are up and,
// once all keys are written, only while the kubelet misses something.
func Concerns(pod *corev1.Pod, r Policy) bool {
	if over(pod) {
		return false
	}
	if c := lifecycle.ConditionOf(pod, corev1.ContainersReady); c != nil && c.Status == corev1.ConditionTrue {
		return false
	}
	all, _ := heldIn(pod, r)
	done := r.completed(pod)
	return slices.ContainsFunc(all, func(h held) bool { return !h.up && (!done || h.blocked) })
}

// Incomplete reports whether a pod is ordered and not marked complete. Concerns is false for such a pod once it is up,
// which does no harm; but a pass that has failed must be finished.
func Incomplete(pod *corev1.Pod, r Policy) bool {
	if over(pod) || r.completed(pod) {
		return false
	}
	all, _ := heldIn(pod, r)
	return len(all) > 0
}

// over reports whether no container of a pod starts any more.
func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (r Policy) completed(pod *corev1.Pod) bool {
	_, value, _ := r.Keys.Lookup(pod.Annotations, (*kruise.Keys).LaunchCompletedKey)
	return value == "true"
}
