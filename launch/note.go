package launch

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteNamed is a pod whose name was completed.
	NoteNamed = "NameCompleted"
	// NoteReplaced is a container whose barrier was another before.
	NoteReplaced = "BarrierReplaced"
	// NoteCompletedDropped is a new pod that said to be complete, as a copy of another pod does.
	NoteCompletedDropped = "CompletedDropped"
	// NoteStatic is a static pod, which cannot be held up.
	NoteStatic = "StaticPod"
	// NoteNoBarrier is a container whose barrier is none, so that it is not minded.
	NoteNoBarrier = "NoBarrier"
	// NoteWaits is a container that waits for its turn.
	NoteWaits = "WaitsForTurn"
	// NoteNotUp is a container that others wait for.
	NoteNotUp = "NotUp"
	// NoteFormer is a barrier that a former pod of the name has left.
	NoteFormer = "FormerBarrier"
	// NoteStranger is a ConfigMap of the barrier's name that no pod of the name owns. It is used as it is.
	NoteStranger = "StrangeBarrier"
	// NoteGoing is a barrier that is being deleted; the next can be made when it is gone.
	NoteGoing = "BarrierGoing"
	// NoteLost is a barrier, or a key of it, that is missing and was there before.
	NoteLost = "BarrierLost"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteWaits, NoteNotUp, NoteFormer, NoteGoing:
		return note.Waiting
	}
	return note.Info
}
