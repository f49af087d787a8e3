package launch

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// soon is when a barrier that is being deleted is looked at again.
	soon = time.Second
	// later is when the kubelet should have found the keys that were written for it. It tries every minute or so.
	later = 2 * time.Minute
)

// Input is a pod as the controller sees it.
type Input struct {
	// Pod of which containers wait.
	Pod *corev1.Pod
	// Barrier is the ConfigMap with the name of BarrierName; nil where there is none.
	Barrier *corev1.ConfigMap
	Rules
}

// Plan is what the controller does about a pod: all of it, in the order of the fields. When one fails, the rest waits for the
// next plan.
type Plan struct {
	// Remove is the UID of a barrier to delete, for a former pod of the same name has left it; empty for none. Look past the
	// cache before whether the pod is still the one that is there: else it is the barrier of a later one.
	Remove types.UID
	// Create this barrier; nil for none.
	Create *corev1.ConfigMap
	// Add these keys to the barrier that is there; AddPatch is how.
	Add []string
	// Complete marks the pod, for all its containers may start; CompletePatch is how.
	Complete bool
	// RequeueAfter is when to look again although nothing changes; 0 for never. Look at the barrier past what is remembered of
	// it then.
	RequeueAfter time.Duration
	// Notes say why.
	Notes []note.Note
}

// Empty says that there is nothing to write.
func (p Plan) Empty() bool {
	return p.Remove == "" && p.Create == nil && len(p.Add) == 0 && !p.Complete
}

// Step says which containers of a pod may start now.
func Step(in Input) Plan {
	s := &stepper{Input: in}
	if over(in.Pod) {
		return s.plan
	}
	s.held, s.plan.Notes = heldIn(in.Pod, in.Rules)
	if len(s.held) == 0 {
		return s.plan
	}
	s.look()
	from, all := s.turn()
	switch {
	case in.Barrier != nil && in.Barrier.DeletionTimestamp != nil:
		s.note(NoteGoing, in.Pod.Name, "waits until ConfigMap "+in.Barrier.Name+" is gone")
		s.plan.Remove, s.plan.RequeueAfter = "", soon
		return s.plan
	case all:
		s.open(func(held, key) bool { return true })
		s.plan.Complete = !completed(in.Pod)
	default:
		s.open(func(h held, k key) bool { return h.up || k.number >= from })
	}
	s.tell()
	return s.plan
}

// Doubts says that the kubelet misses something although its keys are in the barrier. It may not have tried again, or it is
// something else; or the barrier is no longer as it is remembered, and it is time to read it.
func Doubts(in Input) bool {
	s := &stepper{Input: in}
	s.held, _ = heldIn(in.Pod, in.Rules)
	s.look()
	return slices.ContainsFunc(s.held, func(h held) bool { return h.blocked && s.has(h) })
}

type stepper struct {
	Input
	held []held
	// open keys of the barrier, which counts only if it is this pod's.
	keys map[string]bool
	plan Plan
}

func (s *stepper) note(code, object, text string) {
	s.plan.Notes = append(s.plan.Notes, newNote(code, object, text))
}

// look judges the barrier that is there.
func (s *stepper) look() {
	s.keys = map[string]bool{}
	if s.Barrier == nil {
		return
	}
	switch ownerOf(s.Barrier, s.Pod) {
	case former:
		s.note(NoteFormer, s.Pod.Name, "ConfigMap "+s.Barrier.Name+" is from a former pod of this name, and is replaced")
		s.plan.Remove = s.Barrier.UID
		return
	case stranger:
		s.note(NoteStranger, s.Pod.Name, "ConfigMap "+s.Barrier.Name+" is of somebody else; keys are added to it, and it is not deleted")
	}
	for k := range s.Barrier.Data {
		s.keys[k] = true
	}
	for k := range s.Barrier.BinaryData {
		s.keys[k] = true
	}
}

// has says whether a container can start, as far as the barrier goes.
func (s *stepper) has(h held) bool {
	return !slices.ContainsFunc(h.keys, func(k key) bool { return !s.keys[k.text] })
}

// turn is the priority whose turn it is, and those above; or it is the turn of all.
func (s *stepper) turn() (from int64, all bool) {
	levels := pending(s.held)
	if completed(s.Pod) || len(levels) == 0 || levels[0] == levels[len(levels)-1] {
		return 0, true
	}
	lowest := levels[0]
	return levels[len(levels)-1], !slices.ContainsFunc(s.held, func(h held) bool { return !h.up && h.level == lowest && !s.has(h) })
}

// open writes the keys that are wanted and not there.
func (s *stepper) open(wanted func(held, key) bool) {
	var missing []string
	lost := false
	for _, h := range s.held {
		for _, k := range h.keys {
			if !wanted(h, k) || s.keys[k.text] {
				continue
			}
			missing = append(missing, k.text)
			lost = lost || h.up || completed(s.Pod)
			s.keys[k.text] = true
		}
	}
	if lost {
		s.note(NoteLost, s.Pod.Name, "the barrier lacks what containers have started with, and would miss when they start again")
	}
	slices.Sort(missing)
	switch {
	case s.Barrier == nil || s.plan.Remove != "":
		s.plan.Create = newBarrier(s.Pod, missing)
	case len(missing) > 0:
		s.plan.Add = missing
	}
}

// tell says who waits for whom, and when to see whether the kubelet has found what is there for it.
func (s *stepper) tell() {
	var notUp []string
	for _, h := range s.held {
		if s.has(h) && !h.up {
			notUp = append(notUp, h.name)
		}
		if s.has(h) && h.blocked {
			s.plan.RequeueAfter = later
		}
	}
	for _, h := range s.held {
		switch {
		case h.up:
		case s.has(h):
			s.note(NoteNotUp, h.name, "may start, and is not up yet")
		default:
			s.note(NoteWaits, h.name, "waits for "+strings.Join(notUp, ", "))
		}
	}
}

// owner is whose a ConfigMap is.
type owner int

const (
	own owner = iota
	former
	stranger
)

// ownerOf goes by the UID: a pod of a StatefulSet comes back under its name before what belonged to the last one is gone.
func ownerOf(barrier *corev1.ConfigMap, pod *corev1.Pod) owner {
	whose := stranger
	for _, ref := range barrier.OwnerReferences {
		switch {
		case ref.UID == pod.UID:
			return own
		case ref.Kind == "Pod" && ref.APIVersion == "v1" && ref.Name == pod.Name:
			whose = former
		}
	}
	return whose
}

// newBarrier goes with its pod.
func newBarrier(pod *corev1.Pod, keys []string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: BarrierName(pod.Name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Data: dataOf(keys),
	}
}

func dataOf(keys []string) map[string]string {
	data := make(map[string]string, len(keys))
	for _, k := range keys {
		data[k] = "true"
	}
	return data
}

// markOf is the annotation of a pod whose containers may all start.
func markOf() map[string]string {
	return map[string]string{pub.ContainerLaunchPriorityCompletedKey: "true"}
}
