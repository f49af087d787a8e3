package sidecar

import (
	"errors"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar/sizing"
)

// The codes of notes.
const (
	// NotePodInactive is a pod that is over or being deleted, so that it gets nothing. It is of no set.
	NotePodInactive = "PodInactive"
	// NotePaused is a set whose injection is paused.
	NotePaused = "InjectionPaused"
	// NoteNamespaceUnknown is a set that selects namespaces, while that of the pod is not known.
	NoteNamespaceUnknown = "NamespaceUnknown"
	// NoteHidden is a set whose canary the pod gets in its place.
	NoteHidden = "HiddenByCanary"
	// NoteReplaced is a container of the pod that a container of the set takes the place of.
	NoteReplaced = "ContainerReplaced"
	// NoteVolumeKept is a volume of the set that the pod, or another set, has already and otherwise.
	NoteVolumeKept = "VolumeKept"
	// NoteVolumeMissing is a mount whose volume the set does not have, nor the pod.
	NoteVolumeMissing = "VolumeMissing"
	// NoteNotShared is a mount or a device that a container does not get, because it has another at that path.
	NoteNotShared = "PathTaken"
	// NoteNotTransferred is a variable that a container does not get.
	NoteNotTransferred = "EnvNotTransferred"
	// NoteAnnotationKept is an annotation that the pod has already and otherwise, or that no set writes: see IsRecord.
	NoteAnnotationKept = "AnnotationKept"
	// NoteAnnotationReplaced is an annotation of the pod that is overwritten.
	NoteAnnotationReplaced = "AnnotationReplaced"
	// NoteUnlimited is a limit that a container does not get, because one of those that count has none.
	NoteUnlimited = sizing.NoteUnlimited
	// NoteAboveLimit is a computed request above the limit, so that the API server will refuse the pod.
	NoteAboveLimit = sizing.NoteAboveLimit
	// NoteFraction is a computed amount of memory with a fraction of a byte.
	NoteFraction = sizing.NoteFraction
)

// What makes the creation of a pod fail. Each comes wrapped in a *FieldError.
var (
	// ErrNoRevision is a revision to inject that is not there.
	ErrNoRevision = errors.New("no such revision of the set")
	// ErrNoTarget is a resourcesPolicy that no container of the pod matches.
	ErrNoTarget = sizing.ErrNoTarget
	// ErrClash is a name of a container that would be twice in the pod.
	ErrClash = errors.New("the name is in the pod already")
	// ErrNoEmptyImage is a hot upgrade that lacks the image of the container that is not at work.
	ErrNoEmptyImage = errors.New("hotUpgradeEmptyImage is empty")
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteVolumeMissing, NoteAboveLimit:
		return note.Blocked
	}
	return note.Info
}
