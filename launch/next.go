package launch

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/note"
)

const (
	// soon is when a barrier that is being deleted is read again.
	soon = time.Second
	// later is when the kubelet should have seen the keys, which it retries about every minute.
	later = 2 * time.Minute
)

// Input is a pod and its barrier.
type Input struct {
	// Pod whose containers wait.
	Pod *corev1.Pod
	// Barrier is the ConfigMap with the name of BarrierName; nil where there is none.
	Barrier *corev1.ConfigMap
	Policy
}

// Plan is the writes for a pod, in the order of the fields. When one fails, the others wait for the next plan.
type Plan struct {
	// Remove is the UID of a barrier to delete, which is of a former pod of the same name; empty for none. Before the
	// deletion, read the pod live: if it was replaced, the barrier may be of the new pod.
	Remove types.UID
	// Create this barrier; nil for none.
	Create *corev1.ConfigMap
	// Add these keys to the barrier, with AddPatch.
	Add []string
	// Complete marks the pod as complete, with CompletePatch: all its containers may start.
	Complete bool
	// RequeueAfter is when to reconcile again although nothing changes, with a live read of the barrier; 0 for never.
	RequeueAfter time.Duration
	// Notes give the reasons.
	Notes []note.Note
}

// Empty reports whether there is nothing to write.
func (p Plan) Empty() bool {
	return p.Remove == "" && p.Create == nil && len(p.Add) == 0 && !p.Complete
}

// Next returns the writes that let the next containers of a pod start.
func Next(in Input) Plan {
	s := &stepper{Input: in}
	if over(in.Pod) {
		return s.plan
	}
	s.held, s.plan.Notes = heldIn(in.Pod, in.Policy)
	if len(s.held) == 0 {
		return s.plan
	}
	s.look()
	from, all := s.turn()
	switch {
	case in.Barrier != nil && in.Barrier.DeletionTimestamp != nil:
		s.note(NoteTerminating, in.Pod.Name, "waits until ConfigMap "+in.Barrier.Name+" is gone")
		s.plan.Remove, s.plan.RequeueAfter = "", soon
		return s.plan
	case all:
		s.open(func(held, key) bool { return true })
		s.plan.Complete = !in.completed(in.Pod)
	default:
		s.open(func(h held, k key) bool { return h.up || k.number >= from })
	}
	s.report()
	return s.plan
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

// look compares the barrier with the pod.
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
		s.note(NoteForeign, s.Pod.Name,
			"ConfigMap "+s.Barrier.Name+" has another owner: the reconciler adds keys, and does not delete the ConfigMap")
	}
	for k := range s.Barrier.Data {
		s.keys[k] = true
	}
	for k := range s.Barrier.BinaryData {
		s.keys[k] = true
	}
}

// has reports whether the barrier lets a container start.
func (s *stepper) has(h held) bool {
	return !slices.ContainsFunc(h.keys, func(k key) bool { return !s.keys[k.text] })
}

// turn is the priority whose turn it is, and those above; or it is the turn of all.
func (s *stepper) turn() (from int64, all bool) {
	levels := pending(s.held)
	if s.completed(s.Pod) || len(levels) == 0 || levels[0] == levels[len(levels)-1] {
		return 0, true
	}
	lowest := levels[0]
	return levels[len(levels)-1], !slices.ContainsFunc(s.held, func(h held) bool {
		return !h.up && h.level == lowest && !s.has(h)
	})
}

// open writes the keys that are missing.
func (s *stepper) open(wanted func(held, key) bool) {
	var missing []string
	lost := false
	for _, h := range s.held {
		for _, k := range h.keys {
			if !wanted(h, k) || s.keys[k.text] {
				continue
			}
			missing = append(missing, k.text)
			lost = lost || h.up || s.completed(s.Pod)
			s.keys[k.text] = true
		}
	}
	if lost {
		s.note(NoteLost, s.Pod.Name,
			"the barrier lacks what containers have started with, and would miss when they start again")
	}
	slices.Sort(missing)
	switch {
	case s.Barrier == nil || s.plan.Remove != "":
		s.plan.Create = newBarrier(s.Pod, missing)
	case len(missing) > 0:
		s.plan.Add = missing
	}
}

// report notes which containers wait, and when to read whether the kubelet has seen its keys.
func (s *stepper) report() {
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
			s.note(NoteNotReady, h.name, "may start, and is not up yet")
		default:
			s.note(NoteWaiting, h.name, "waits for "+strings.Join(notUp, ", "))
		}
	}
}

// owner is the owner of a ConfigMap.
type owner int

const (
	own owner = iota
	former
	stranger
)

// ownerOf compares UIDs: a pod of a StatefulSet is recreated under its name before the objects of the former pod are
// deleted.
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

// newBarrier returns a barrier that is deleted with its pod.
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
