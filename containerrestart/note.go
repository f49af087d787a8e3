package containerrestart

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteQueued waits for another request of the same pod.
	NoteQueued = "RecreateQueued"
	// NoteGrace waits while the pod leaves traffic.
	NoteGrace = "RecreateGracePeriod"
	// NoteNoGate is a pod that cannot be taken out of traffic, as it lacks the readiness gate.
	NoteNoGate = "RecreateNoReadinessGate"
	// NoteUnreadable is something that another writer left, and that cannot be read.
	NoteUnreadable = "RecreateUnreadable"
	// NoteStopping waits for a container to stop.
	NoteStopping = "RecreateStopping"
	// NoteNotFound waits for a container that the runtime does not have.
	NoteNotFound = "RecreateNotFound"
	// NoteStarting waits for a new container to be up.
	NoteStarting = "RecreateStarting"
	// NoteEnded is a request that ended early; the text is its message.
	NoteEnded = "RecreateEnded"
	// NoteNoEnv waits until the environment of a container's process is read.
	NoteNoEnv = "RecreateEnvUnread"
	// NoteLaunchOrder waits for containers of a higher launch priority.
	NoteLaunchOrder = "RecreateLaunchOrder"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteQueued, NoteGrace, NoteStopping, NoteNotFound, NoteStarting, NoteNoEnv, NoteLaunchOrder:
		return note.Waiting
	case NoteUnreadable:
		return note.Blocked
	}
	return note.Info
}
