package rollout

import "fmt"

// Note says why a pod is not updated now, or what of the spec is not followed.
type Note struct {
	// Code is the reason in one word, for events and logs.
	Code string
	// Object is the pod as namespace/name; empty when the note is about all of them.
	Object string
	// Text is a sentence.
	Text string
}

// The codes of notes.
const (
	// NoteNotUpdate is said while the strategy leaves running pods alone.
	NoteNotUpdate = "NotUpdate"
	// NotePaused is said while updates are paused.
	NotePaused = "Paused"
	// NoteNotSelected says how many pods updateStrategy.selector leaves out.
	NoteNotSelected = "NotSelected"
	// NotePartition says how many pods the partition keeps as they are.
	NotePartition = "Partition"
	// NoteUpdateLimited says how many pods wait because too many updated ones are not ready.
	NoteUpdateLimited = "UpdateLimited"
	// NoteNotUpgradable is a pod that lacks more of the set than images.
	NoteNotUpgradable = "NotUpgradable"
	// NoteUnderWay is a pod in which a container is about to restart for an earlier update.
	NoteUnderWay = "UnderWay"
	// NoteHotUpgrade is a pod whose new container is not ready to work alone.
	NoteHotUpgrade = "HotUpgrade"
	// NoteUnreadable is a pod with an annotation that cannot be read, or that cannot be made what the set wants.
	NoteUnreadable = "Unreadable"
	// NoteRefused is a pod that Input.May or Input.Held does not let be updated.
	NoteRefused = "Refused"
	// NotePriorityIgnored says that a part of the priority strategy cannot be read.
	NotePriorityIgnored = "PriorityIgnored"
	// NoteSpecUnread says that nothing is updated since a part of the spec cannot be read.
	NoteSpecUnread = "SpecUnread"
)

func (p *planner) note(code string, m *member, format string, args ...any) {
	n := Note{Code: code, Text: fmt.Sprintf(format, args...)}
	if m != nil {
		n.Object = m.pod.Namespace + "/" + m.pod.Name
	}
	p.plan.Notes = append(p.plan.Notes, n)
}

// noteWaiting notes that n pods wait, if there are any. why continues the sentence.
func (p *planner) noteWaiting(code string, n int, why string) {
	switch {
	case n == 1:
		p.note(code, nil, "1 pod waits %s", why)
	case n > 1:
		p.note(code, nil, "%d pods wait %s", n, why)
	}
}

// SpecError is a part of a set's spec that cannot be read, which only another spec can mend. The plan does what does not
// need that part.
type SpecError struct {
	// Field is its path.
	Field string
	// Err is what is wrong with it.
	Err error
}

// Error names the field and what is wrong.
func (e *SpecError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives what is wrong.
func (e *SpecError) Unwrap() error { return e.Err }
