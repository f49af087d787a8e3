package rollout

import (
	"fmt"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes. The object of a note is a pod as namespace/name, or empty for all pods of the set.
const (
	// NoteNotUpdate counts the pods that wait because the strategy updates no running pods.
	NoteNotUpdate = "NotUpdate"
	// NotePaused counts the pods that wait because updates are paused.
	NotePaused = "Paused"
	// NoteNotSelected counts the pods that updateStrategy.selector excludes.
	NoteNotSelected = "NotSelected"
	// NotePartition counts the pods that the partition keeps.
	NotePartition = "Partition"
	// NoteUpdateLimited counts the pods that wait because too many updated ones are not ready.
	NoteUpdateLimited = "UpdateLimited"
	// NoteNotUpgradable is a pod that lacks more of the set than images.
	NoteNotUpgradable = "NotUpgradable"
	// NoteLacking counts the pods that lack a container of the set.
	NoteLacking = "ContainersMissing"
	// NoteUnderWay is a pod with a container that is about to restart for an earlier update.
	NoteUnderWay = "UnderWay"
	// NoteHotUpgrade is a pod whose new container is not ready to work alone.
	NoteHotUpgrade = "HotUpgrade"
	// NoteUnreadable is a pod with an annotation that cannot be read or changed.
	NoteUnreadable = "Unreadable"
	// NoteRefused is a pod that Input.Held excludes from updates.
	NoteRefused = "Refused"
	// NotePriorityIgnored is a part of the priority strategy that cannot be read.
	NotePriorityIgnored = "PriorityIgnored"
	// NoteSpecUnread is a part of the spec that cannot be read, so that no pod is updated.
	NoteSpecUnread = "SpecUnread"
)

// levelOf returns what a note of a code means for the reader.
func levelOf(code string) note.Level {
	switch code {
	case NoteUpdateLimited, NoteUnderWay, NoteHotUpgrade, NoteRefused:
		return note.Waiting
	case NoteNotUpgradable, NoteLacking, NoteUnreadable, NoteSpecUnread:
		return note.Blocked
	}
	return note.Info
}

func (p *planner) note(code string, m *member, format string, args ...any) {
	n := note.Note{Level: levelOf(code), Code: code, Text: fmt.Sprintf(format, args...)}
	if m != nil {
		n.Object = m.pod.Namespace + "/" + m.pod.Name
	}
	p.result.Notes = append(p.result.Notes, n)
}

// noteWaiting notes that n pods wait, if any. The note continues with why.
func (p *planner) noteWaiting(code string, n int, why string) {
	switch {
	case n == 1:
		p.note(code, nil, "1 pod waits %s", why)
	case n > 1:
		p.note(code, nil, "%d pods wait %s", n, why)
	}
}

// SpecError is a part of a set's spec that cannot be read. Only a change of the spec mends it. The plan contains what
// does not need that part.
type SpecError struct {
	// Field is its path.
	Field string
	// Err is the reason.
	Err error
}

// Error returns the field and the reason.
func (e *SpecError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *SpecError) Unwrap() error { return e.Err }
