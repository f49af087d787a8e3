package launch

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
)

// configError is the reason of a container that the kubelet cannot make because something that it refers to is missing.
const configError = "CreateContainerConfigError"

// Rules say when a container lets the next ones start. The zero value is as the reference has it.
type Rules struct {
	// Started lets a container count from its start on, after its startup probe and its postStart hook, and not only when it
	// is ready. A readiness probe with a long delay then holds up nobody.
	Started bool
}

// held is a container with a barrier.
type held struct {
	name string
	// keys that must be in the barrier before it can start: one, or more where it was injected more than once.
	keys []key
	// level is the lowest priority among them: that is when it can start.
	level int64
	// up lets the next level start; blocked is what the kubelet says of a container that lacks a key, or something else.
	up, blocked bool
}

// key is one of a barrier.
type key struct {
	text   string
	number int64
}

// keyOf is the key of a priority.
func keyOf(priority int64) string {
	return pub.ContainerLaunchBarrierKeyPrefix + strconv.FormatInt(priority, 10)
}

// parse reads the key of a barrier. The reference gives priorities of 64 bits.
func parse(text string) (key, bool) {
	digits, ok := strings.CutPrefix(text, pub.ContainerLaunchBarrierKeyPrefix)
	if !ok {
		return key{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return key{text, n}, err == nil
}

// heldIn are the containers of a pod that wait for a barrier, in the order of the pod, and notes on those that only seem to.
func heldIn(pod *corev1.Pod, r Rules) ([]held, []note.Note) {
	var all []held
	var notes []note.Note
	barrier := BarrierName(pod.Name)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		h := held{name: c.Name}
		for j := range c.Env {
			if c.Env[j].Name != pub.ContainerLaunchBarrierEnvName {
				continue
			}
			k, ok := keyIn(&c.Env[j], barrier)
			if !ok {
				notes = append(notes, newNote(NoteNoBarrier, c.Name, c.Env[j].Name+" does not refer to a priority in ConfigMap "+barrier))
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

// keyIn is the key of a barrier that a variable refers to.
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

// Pending are the priorities of the containers with a barrier that are not up, in ascending order, each as often as there are
// such containers.
func Pending(pod *corev1.Pod, r Rules) []int64 {
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

// Concerns says whether there is anything to do for a pod, whatever its barrier holds. It is not worth a look at the barrier
// while the containers are up, and once all keys are written, only while the kubelet misses something.
func Concerns(pod *corev1.Pod, r Rules) bool {
	if over(pod) {
		return false
	}
	if c := lifecycle.ConditionOf(pod, corev1.ContainersReady); c != nil && c.Status == corev1.ConditionTrue {
		return false
	}
	all, _ := heldIn(pod, r)
	done := completed(pod)
	return slices.ContainsFunc(all, func(h held) bool { return !h.up && (!done || h.blocked) })
}

// Unmarked says whether a pod is ordered and not marked complete. A pod that is up and unmarked is no concern: that harms nobody.
// But a pass over it that was begun, and failed, is to be brought to its end.
func Unmarked(pod *corev1.Pod) bool {
	if over(pod) || completed(pod) {
		return false
	}
	all, _ := heldIn(pod, Rules{})
	return len(all) > 0
}

// over says whether no container of a pod starts any more.
func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func completed(pod *corev1.Pod) bool {
	return pod.Annotations[pub.ContainerLaunchPriorityCompletedKey] == "true"
}
