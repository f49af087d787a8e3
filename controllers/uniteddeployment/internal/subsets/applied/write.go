package applied

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Longest is the longest pause between two writes of the same content.
const Longest = 5 * time.Minute

// Write is what is known of the last write of an object. The zero value is no write.
type Write struct {
	// UID of the object that was written.
	UID types.UID
	// Content identifies what was written.
	Content string
	// Lacks are the paths that the answer lacked of what was written, because an admission webhook had changed them.
	Lacks []string

	at time.Time
	// repeats counts the writes of the same content before.
	repeats int
}

// Attempt is a write that a pass wants.
type Attempt struct {
	UID     types.UID
	Content string
	// Lacks are the paths that the stored object lacks of the content. An attempt without any has another reason.
	Lacks []string
	Now   time.Time
}

// Next returns the write that follows the last one; nil for none now. With a duration, the write is due after that.
func (last Write) Next(a Attempt) (*Write, time.Duration) {
	next := &Write{UID: a.UID, Content: a.Content, at: a.Now}
	if last.UID != a.UID || last.Content != a.Content {
		return next, 0
	}
	if len(a.Lacks) > 0 && slices.Equal(last.Lacks, a.Lacks) {
		return nil, 0 // another write would be changed in the same way
	}
	if rest := last.at.Add(min(time.Second<<min(last.repeats, 10), Longest)).Sub(a.Now); rest > 0 {
		return nil, rest
	}
	next.repeats = last.repeats + 1
	return next, 0
}

// Answered returns the write with what the answer of the API server lacks of the content.
func (last Write) Answered(uid types.UID, lacks []string) Write {
	last.UID, last.Lacks = uid, lacks
	return last
}
