package inplace

import (
	corev1 "k8s.io/api/core/v1"
)

// Note says why a pod waits, or what is out of the ordinary.
type Note struct {
	// Code is the reason in one word, for events and conditions.
	Code string
	// Object is the name of the pod.
	Object string
	// Text is a sentence.
	Text string
}

// The codes of notes.
const (
	// NoteGrace waits for the end of the grace period.
	NoteGrace = "InPlaceGracePeriod"
	// NoteBatch waits for the containers of a batch to be ready before the next.
	NoteBatch = "InPlaceBatch"
	// NoteImage waits for a container to run its new image.
	NoteImage = "InPlaceImage"
	// NoteEnv waits for a container to run with its new environment.
	NoteEnv = "InPlaceEnv"
	// NoteDaemon waits for what only a daemon on the node can tell.
	NoteDaemon = "InPlaceNoDaemon"
	// NoteResize waits for a container to get its new resources.
	NoteResize = "InPlaceResize"
	// NoteDeferred waits for room on the node.
	NoteDeferred = "InPlaceResizeDeferred"
	// NoteInfeasible is a pod whose node can never have the resources asked for.
	NoteInfeasible = "InPlaceResizeInfeasible"
	// NoteFinished is a pod that has ended, so that nothing starts in it any more.
	NoteFinished = "InPlacePodFinished"
	// NoteUnreadable is an annotation that cannot be read.
	NoteUnreadable = "InPlaceUnreadable"
)

func note(pod *corev1.Pod, code, text string) Note {
	return Note{Code: code, Object: pod.Name, Text: text}
}
