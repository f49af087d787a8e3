package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// The codes of notes, beside those of packages scale and inplace.
const (
	// NoteNotInPlace is a pod that is recreated, because its change is not possible in place.
	NoteNotInPlace = "NotInPlace"
	// NoteRefused is an instance whose update MayUpdate or the answer to a question refused.
	NoteRefused = "UpdateRefused"
	// NoteAhead is a pod whose update waits for what comes before it, see Input.Ahead.
	NoteAhead = "UpdateWaits"
	// NoteNotEvicted is a pod whose eviction the API server refused for now, as for a PodDisruptionBudget without room.
	NoteNotEvicted = "EvictionRefused"
	// NotePodsLimited is a group whose pods wait for their update, for a bound of the group or of a role.
	NotePodsLimited = "PodsUpdateLimited"
	// NoteRestart is a pod that has failed, see Restart.
	NoteRestart = "PodRestart"
	// NoteReverted is a pod whose writes another writer reverts.
	NoteReverted = "WritesReverted"
	// NoteImagePull is a pod whose node cannot pull an image.
	NoteImagePull = "ImagePullFailed"
	// NoteCrashing is a pod with a container that fails again and again.
	NoteCrashing = "ContainerCrashing"
	// NoteConfig is a pod with a container that its node cannot create.
	NoteConfig = "ContainerConfigError"
	// NoteUnschedulable is a pod that fits on no node.
	NoteUnschedulable = "PodUnschedulable"
)

// textReverted is why a write is not made again now.
const textReverted = "writes of the pod do not last: another writer reverts them"

func (p *Pass) note(level note.Level, code, object, text string) {
	p.notes = append(p.notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// Notes returns why the pass is as it is and what the rest waits for: the notes of the plan, then those of pods by
// name.
func (p *Pass) Notes() []note.Note {
	notes := slices.Clone(p.notes)
	for _, i := range p.instances {
		for _, m := range i.members {
			if n, stuck := Stuck(m.pod); stuck {
				notes = append(notes, n)
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b note.Note) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	return slices.Concat(p.result.Notes, slices.Compact(notes))
}

// crashes is how often a container has restarted before it counts as crashing.
const crashes = 2

// Stuck returns the note of a pod that does not become ready until a user changes an object: an image, a
// configuration, the room on the nodes. The note of a pod stays the same while its node tries again.
func Stuck(pod *corev1.Pod) (note.Note, bool) {
	blocked := func(code, format string, args ...any) (note.Note, bool) {
		return note.Note{Level: note.Blocked, Code: code, Object: pod.Name, Text: fmt.Sprintf(format, args...)}, true
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodScheduled); pod.Spec.NodeName == "" && c != nil &&
		c.Reason == corev1.PodReasonUnschedulable {
		return blocked(NoteUnschedulable, "%s", c.Message)
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for k := range list {
			if code, text := stuckContainer(pod, &list[k]); code != "" {
				return blocked(code, "container %s %s", list[k].Name, text)
			}
		}
	}
	return note.Note{}, false
}

// stuckContainer returns what keeps a container from running, and no code for nothing.
func stuckContainer(pod *corev1.Pod, s *corev1.ContainerStatus) (code, text string) {
	waits, last := s.State.Waiting, s.LastTerminationState.Terminated
	switch {
	case waits != nil &&
		slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, waits.Reason):
		return NoteImagePull, "cannot pull image " + imageOf(pod, s.Name)
	case waits != nil && slices.Contains([]string{"CreateContainerConfigError", "CreateContainerError"}, waits.Reason):
		return NoteConfig, "cannot be created: " + waits.Message
	case waits != nil && waits.Reason == "RunContainerError":
		return NoteCrashing, "cannot start: " + waits.Message
	case s.Ready || s.RestartCount < crashes || last == nil || last.ExitCode == 0:
		return "", ""
	case waits == nil || waits.Reason == "CrashLoopBackOff":
		return NoteCrashing, fmt.Sprintf("fails with exit code %d", last.ExitCode)
	}
	return "", ""
}

// imageOf is the image that a container is to run, rather than the one in its status, which may be of the one before.
func imageOf(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			if list[k].Name == container {
				return list[k].Image
			}
		}
	}
	return ""
}

// RequeueAfter is when to look again although nothing changes; 0 for never.
func (p *Pass) RequeueAfter() time.Duration { return p.after }

// Failures are what went wrong, by object. Each stopped only its own instance.
func (p *Pass) Failures() []Failure {
	sorted := slices.Clone(p.failures)
	slices.SortStableFunc(sorted, func(a, b Failure) int { return cmp.Compare(a.Object, b.Object) })
	return sorted
}

// MaxErrors is how many failures the error of Err lists.
const MaxErrors = 8

// Err joins failures into one error, which is the same whatever the order of the answers. Nil for none.
func Err(failures []Failure) error {
	var all []error
	for k, f := range failures {
		if k == MaxErrors {
			all = append(all, fmt.Errorf("%d more", len(failures)-MaxErrors))
			break
		}
		all = append(all, f.Err)
	}
	return errors.Join(all...)
}

// Result returns the plan of the numbers.
func (p *Pass) Result() scale.Result { return p.result }

// Creations returns the pods that the pass is to create, before Next.
func (p *Pass) Creations() []Creation { return slices.Clone(p.creations) }

// Pods returns the pods that are neither finished nor terminating, as the last answers left them, by instance.
func (p *Pass) Pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(p.instances))
	for _, i := range p.instances {
		for _, m := range i.members {
			pods = append(pods, m.pod)
		}
	}
	return pods
}

// Counts are the numbers of pods for a status.
type Counts struct {
	Pods, Ready, Available                      int32
	UpdatedPods, UpdatedReady, UpdatedAvailable int32
}

// Counts counts the pods as the last answers left them.
func (p *Pass) Counts() Counts {
	var c Counts
	add := func(is, updated bool, all, ofUpdated *int32) {
		if is {
			*all++
		}
		if is && updated {
			*ofUpdated++
		}
	}
	for _, pod := range p.Pods() {
		updated := p.in.IsUpdated(pod)
		available, _ := p.in.Scale.Available(pod)
		add(true, updated, &c.Pods, &c.UpdatedPods)
		add(isReady(pod, p.in.Policy.Keys), updated, &c.Ready, &c.UpdatedReady)
		add(available, updated, &c.Available, &c.UpdatedAvailable)
	}
	return c
}

// IsReady reports whether a pod serves, whatever its hooks say.
func IsReady(pod *corev1.Pod) bool { return isReady(pod, nil) }

func isReady(pod *corev1.Pod, keys *kruise.Keys) bool {
	is := func(t corev1.PodConditionType, absent bool) bool {
		c := lifecycle.ConditionOf(pod, t)
		return c == nil && absent || c != nil && c.Status == corev1.ConditionTrue
	}
	return pod.Status.Phase == corev1.PodRunning && is(corev1.PodReady, false) && is(keys.InPlaceReadyOf(pod), true)
}
