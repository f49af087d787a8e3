package ephemeral

import (
	"fmt"
	"strings"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes.
const (
	// NoteLimited says that pods wait for the containers of others to end.
	NoteLimited = "ParallelismReached"
	// NoteTaken says that pods have containers with names of the template that are not of the job.
	NoteTaken = "ContainerNameTaken"
	// NoteBeyond says that more pods match than the job has replicas.
	NoteBeyond = "ReplicasReached"
	// NoteMissing says that fewer pods exist than the job has replicas. The job does not end before.
	NoteMissing = "ReplicasMissing"
	// NoteRefused is a pod whose containers the API server has refused.
	NoteRefused = "CreateFailed"
	// NoteEmpty says that the job has no target. The job waits for one.
	NoteEmpty = "MatchEmpty"
	// NotePaused is a job that its spec pauses.
	NotePaused = "Paused"
	// NoteSucceeded is a job that ended well in all targets.
	NoteSucceeded = "JobSucceeded"
	// NoteFailed is a job that ended in all targets, and failed in some.
	NoteFailed = "JobFailed"
	// NoteDeadline is a job that ends because it took too long.
	NoteDeadline = "DeadlineExceeded"
	// NoteInvalid is a spec that cannot work.
	NoteInvalid = "InvalidSpec"
)

const (
	// mostNames bounds how many objects a text names.
	mostNames = 3
	// mostText bounds the bytes of a foreign text.
	mostText = 500
)

// some names the first of some objects, and counts the rest.
func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

func brief(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "..."
}

func waiting(code, object, text string) note.Note {
	return note.Note{Level: note.Waiting, Code: code, Object: object, Text: text}
}

func blocked(code, object, text string) note.Note {
	return note.Note{Level: note.Blocked, Code: code, Object: object, Text: text}
}
