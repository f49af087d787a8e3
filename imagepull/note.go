package imagepull

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NotePaused says that the job starts no pulls, because parallelism is 0.
	NotePaused = "Paused"
	// NoteLimited says that nodes wait for others to finish.
	NoteLimited = "ParallelismReached"
	// NoteFull is a node that lists as much as it may.
	NoteFull = "NodeImageFull"
	// NoteDeadline is a job that took too long.
	NoteDeadline = "DeadlineExceeded"
	// NoteBadNumber is a number that makes no sense, and what is taken instead.
	NoteBadNumber = "BadNumber"
	// NoteBadImage is an image that no registry can have.
	NoteBadImage = "BadImage"
	// NoteDropped is a tag, an image or a secret that leaves a NodeImage.
	NoteDropped = "Dropped"
	// NoteNotReady is a node that gets its NodeImage when it has been ready for a while.
	NoteNotReady = "NodeNotReady"
	// NoteNoAnswer is a pull whose result the node does not report.
	NoteNoAnswer = "NoAnswer"
	// NoteReplaced is a job of a list that another takes the place of.
	NoteReplaced = "Replaced"
	// NoteNoSecret is a pull secret that does not exist.
	NoteNoSecret = "SecretMissing"
	// NoteBadSecret is a pull secret that nodes cannot use.
	NoteBadSecret = "SecretUnusable"
	// NoteRefused is a NodeImage that the API server does not take.
	NoteRefused = "NodeImageRefused"
	// NoteUnplaced is the namespace of the copies of pull secrets, which takes none.
	NoteUnplaced = "PullSecretsNotCopied"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteLimited, NoteNotReady, NoteNoAnswer:
		return note.Waiting
	case NoteFull, NoteBadImage, NoteNoSecret, NoteBadSecret, NoteRefused, NoteUnplaced:
		return note.Blocked
	}
	return note.Info
}

// NeedsUser reports whether only a user can mend what a note is about.
func NeedsUser(n note.Note) bool {
	switch n.Code {
	case NoteNoSecret, NoteBadSecret, NoteBadNumber, NoteDeadline, NoteRefused, NoteUnplaced:
		return true
	}
	return false
}
