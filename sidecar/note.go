package sidecar

import (
	"errors"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

// The codes of notes.
const (
	// NotePodInactive is a pod that has ended or is being deleted, and gets nothing. The note has no object.
	NotePodInactive = "PodInactive"
	// NotePaused is a set whose injection is paused.
	NotePaused = "InjectionPaused"
	// NoteNamespaceUnknown is a set that selects namespaces, while the namespace of the pod is unknown.
	NoteNamespaceUnknown = "NamespaceUnknown"
	// NoteHidden is a set that its canary replaces in the pod.
	NoteHidden = "HiddenByCanary"
	// NoteReplaced is a container of the pod that a container of the set replaces.
	NoteReplaced = "ContainerReplaced"
	// NoteVolumeKept is a volume of the set that the pod, or another set, defines otherwise.
	NoteVolumeKept = "VolumeKept"
	// NoteVolumeMissing is a mount whose volume neither the set nor the pod has.
	NoteVolumeMissing = "VolumeMissing"
	// NoteNotShared is a mount or a device that a container does not get, because its path is taken.
	NoteNotShared = "PathTaken"
	// NoteNotTransferred is a variable that a container does not get.
	NoteNotTransferred = "EnvNotTransferred"
	// NoteAnnotationKept is an annotation that the pod keeps, or that no set writes: see IsRecord.
	NoteAnnotationKept = "AnnotationKept"
	// NoteAnnotationReplaced is an annotation of the pod that is overwritten.
	NoteAnnotationReplaced = "AnnotationReplaced"
	// NoteUnlimited is a limit that a container does not get, because a target has no limit.
	NoteUnlimited = sizing.NoteUnlimited
	// NoteAboveLimit is a computed request above the limit, so that the API server will reject the pod.
	NoteAboveLimit = sizing.NoteAboveLimit
	// NoteFraction is a computed amount of memory with a fraction of a byte.
	NoteFraction = sizing.NoteFraction
)

// Reasons why a pod cannot be created. Each is wrapped in a *FieldError.
var (
	// ErrNoRevision is a pinned revision that does not exist.
	ErrNoRevision = errors.New("no such revision of the set")
	// ErrNoTarget is a resourcesPolicy that no container of the pod matches.
	ErrNoTarget = sizing.ErrNoTarget
	// ErrClash is a container name that the pod would have twice.
	ErrClash = errors.New("the name is in the pod already")
	// ErrNoEmptyImage is a hot upgrade without the image of the container that does not work.
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
