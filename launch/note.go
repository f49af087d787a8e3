package launch

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteNameCompleted is a pod whose name was completed.
	NoteNameCompleted = "NameCompleted"
	// NoteReplaced is a container whose barrier was another before.
	NoteReplaced = "BarrierReplaced"
	// NoteCompletedDropped is a new pod that is marked complete, as a copy of another pod is.
	NoteCompletedDropped = "CompletedDropped"
	// NoteStatic is a static pod, which cannot wait.
	NoteStatic = "StaticPod"
	// NoteNoBarrier is a container whose variable is no barrier, and is ignored.
	NoteNoBarrier = "NoBarrier"
	// NoteWaiting is a container that waits for its turn.
	NoteWaiting = "WaitsForTurn"
	// NoteNotReady is a container that others wait for.
	NoteNotReady = "NotUp"
	// NoteFormer is the barrier of a former pod of the name.
	NoteFormer = "FormerBarrier"
	// NoteForeign is a ConfigMap of the barrier's name that no pod of the name owns. It is used without changes to its
	// owner.
	NoteForeign = "StrangeBarrier"
	// NoteTerminating is a barrier that is being deleted; the next one can be created when it is gone.
	NoteTerminating = "BarrierGoing"
	// NoteLost is a barrier, or a key of it, that existed and is missing.
	NoteLost = "BarrierLost"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteWaiting, NoteNotReady, NoteFormer, NoteTerminating:
		return note.Waiting
	}
	return note.Info
}
