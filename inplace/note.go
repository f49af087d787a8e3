package inplace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes.
const (
	// NoteNotStarted waits for the kubelet's first report of a new pod, after which Next opens the readiness gate.
	NoteNotStarted = "InPlaceNotStarted"
	// NoteGrace waits for the end of the grace period.
	NoteGrace = "InPlaceGracePeriod"
	// NoteBatch waits for the containers of a batch to be ready before the next.
	NoteBatch = "InPlaceBatch"
	// NoteImage waits for a container to run its new image.
	NoteImage = "InPlaceImage"
	// NoteEnv waits for a container to run with its new environment.
	NoteEnv = "InPlaceEnv"
	// NoteDaemon waits for what only a daemon on the node can report.
	NoteDaemon = "InPlaceNoDaemon"
	// NoteResize waits for a container to get its new resources.
	NoteResize = "InPlaceResize"
	// NoteDeferred waits for room on the node.
	NoteDeferred = "InPlaceResizeDeferred"
	// NoteInfeasible is a pod whose node can never satisfy the requested resources.
	NoteInfeasible = "InPlaceResizeInfeasible"
	// NoteFinished is a pod that has finished, so that nothing starts in it any more.
	NoteFinished = "InPlacePodFinished"
	// NoteUnreadable is an annotation that cannot be parsed.
	NoteUnreadable = "InPlaceUnreadable"
	// NoteRelabel waits for the pod to be ready before the revision label changes, see RelabelLast.
	NoteRelabel = "InPlaceRelabel"
	// NoteNoGate is a pod whose containers restart in traffic, since it lacks the readiness gate.
	NoteNoGate = "InPlaceNoReadinessGate"
)

func newNote(pod *corev1.Pod, code, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: pod.Name, Text: text}
}

func levelOf(code string) note.Level {
	switch code {
	case NoteDaemon, NoteDeferred, NoteInfeasible, NoteUnreadable:
		return note.Blocked
	case NoteFinished, NoteNoGate:
		return note.Info
	}
	return note.Waiting
}
