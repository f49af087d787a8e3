package broadcast

import (
	"fmt"
	"strings"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes. Those of nodes that do not fit are the reasons of package eligible.
const (
	// NoteLimited says that nodes wait for the pods of others to end.
	NoteLimited = "ParallelismReached"
	// NoteTooMany is a parallelism below the number of pods that are active. None of them is deleted.
	NoteTooMany = "TooManyActivePods"
	// NoteDuplicate is a pod on a node that has another one. Both stay, and the job waits for both.
	NoteDuplicate = "DuplicatePodCreatedOnSameNode"
	// NoteMisplaced is a pod whose node does not fit any more.
	NoteMisplaced = "NodeNoLongerFits"
	// NoteNodeGone is a pod that waits for a node that does not exist.
	NoteNodeGone = "NodeGone"
	// NoteRestarts is a pod that has restarted more often than the failure policy allows. It counts as failed while it
	// runs.
	NoteRestarts = "RestartLimitExceeded"
	// NoteNoNode says that no node fits. The job waits for one.
	NoteNoNode = "NoNodeFits"
	// NotePaused is a job that its spec or its failure policy pauses.
	NotePaused = "Paused"
	// NoteContinued is a job that was paused and goes on.
	NoteContinued = "Continue"
	// NoteCompleted is a job that ran on every node.
	NoteCompleted = "JobComplete"
	// NoteFailedPod is a job that ends because of a failed pod.
	NoteFailedPod = "FailedPodFound"
	// NoteDeadline is a job that ends because it took too long.
	NoteDeadline = "DeadlineExceeded"
)

// mostNames bounds how many objects the text of a note names.
const mostNames = 3

// some names the first of some objects, and counts the rest.
func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

func waiting(code, object, text string) note.Note {
	return note.Note{Level: note.Waiting, Code: code, Object: object, Text: text}
}

func blocked(code, object, text string) note.Note {
	return note.Note{Level: note.Blocked, Code: code, Object: object, Text: text}
}
