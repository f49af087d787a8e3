package scope

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteUnreadable is a set whose selectors cannot be read, or only in part.
	NoteUnreadable = "SelectorUnreadable"
	// NoteWidened is an entry for more pods than the sets select, because an exact entry is larger than API servers
	// accept.
	NoteWidened = "ScopeWidened"
)

func newNote(code, object, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: object, Text: text}
}

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	if code == NoteUnreadable {
		return note.Blocked
	}
	return note.Info
}
