package podprobe

import "github.com/kruisekit/kruisekit/note"

// The codes of notes.
const (
	// NotePort is a probe whose port has no number in the container.
	NotePort = "ProbePortUnresolved"
	// NoteInvalid is a probe or a selector that admission rejects, and that was stored all the same.
	NoteInvalid = "ProbeInvalid"
	// NoteFull is a probe that the node does not run, because the probes of its namespace take too much.
	NoteFull = "NodeProbesFull"
	// NoteReserved is a condition that is not written, because the kubelet or a workload owns it.
	NoteReserved = "ProbeConditionReserved"
	// NoteClaimed is a condition that is not written, because another probe of the pod writes it.
	NoteClaimed = "ProbeConditionClaimed"
)

func newNote(code, object, text string) note.Note {
	level := note.Blocked
	if code == NoteClaimed {
		level = note.Info
	}
	return note.Note{Level: level, Code: code, Object: object, Text: text}
}
