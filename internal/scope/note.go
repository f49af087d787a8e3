package scope

// Note says where the scope is not what the sets say.
type Note struct {
	// Code is the reason in one word.
	Code string
	// Object is the name of the set, or of the entry.
	Object string
	// Text is a sentence.
	Text string
}

// The codes of notes.
const (
	// NoteUnreadable is a set whose selectors cannot be read, or only in part.
	NoteUnreadable = "SelectorUnreadable"
	// NoteWidened is an entry for more pods than the sets select, because to tell them apart takes more than API servers
	// accept.
	NoteWidened = "ScopeWidened"
)
