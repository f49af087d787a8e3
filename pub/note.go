package pub

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NoteUnreadable is a field of a budget that is left out, because it cannot be read.
	NoteUnreadable = "FieldUnreadable"
	// NoteNoAmount is a budget without a readable amount. It protects nothing.
	NoteNoAmount = "CalculateExpectedPodCountFailed"
	// NoteUnknownReplicas is a workload whose replicas cannot be found out.
	NoteUnknownReplicas = "UnknownReplicas"
	// NoteNoneAllowed is a budget that can never admit a disruption, however many pods are available.
	NoteNoneAllowed = "NoDisruptionAllowed"
	// NoteNoPods is a budget that guards no pod.
	NoteNoPods = "NoPods"
	// NoteScaledDown is a total of the spec that does not apply, because the workloads are scaled to zero.
	NoteScaledDown = "TotalReplicasIgnored"
	// NoteNotDeleted is a pod that still exists after the time in which its deletion was expected.
	NoteNotDeleted = "NotDeleted"
)

func newNote(code, object, text string) note.Note {
	level := note.Info
	switch code {
	case NoteUnreadable, NoteNoAmount, NoteUnknownReplicas, NoteNoneAllowed:
		level = note.Blocked
	}
	return note.Note{Level: level, Code: code, Object: object, Text: text}
}
