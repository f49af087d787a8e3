package finish

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteNoNode is a pod whose node is unknown, and with it how to stop the containers.
	NoteNoNode = "NodeUnknown"
	// NoteStopping waits for a request.
	NoteStopping = "RequestUnderWay"
	// NotePause is a request that failed, and is made again later.
	NotePause = "RequestFailed"
	// NoteCameBack is a sidecar that was stopped and started again, since it ended with an error.
	NoteCameBack = "SidecarCameBack"
	// NoteNeverRan is a sidecar that has not started, so that nothing can be stopped.
	NoteNeverRan = "SidecarNeverRan"
	// NoteImageOnly is a sidecar that only another image would end, on a node where containers are stopped instead.
	NoteImageOnly = "SidecarImageOnly"
	// NoteNoImage is a sidecar that cannot be stopped on a virtual node, since it has no image to be replaced by.
	NoteNoImage = "SidecarNoImage"
	// NoteImage waits for a sidecar to run its other image.
	NoteImage = "SidecarImageSet"
	// NoteNotYet is a sidecar that is stopped after others.
	NoteNotYet = "SidecarLater"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteNoNode, NoteStopping, NotePause, NoteNeverRan, NoteImage, NoteNotYet:
		return note.Waiting
	case NoteImageOnly, NoteNoImage:
		return note.Blocked
	}
	return note.Info
}
