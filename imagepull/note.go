package imagepull

// Note says why something waits, or what is out of the ordinary.
type Note struct {
	// Code is the reason in one word, for events and conditions.
	Code string
	// Object is what it is about: a node, an image, a secret.
	Object string
	// Text is a sentence.
	Text string
}

// The codes of notes.
const (
	// NotePaused says that no node is told to pull, because parallelism is 0.
	NotePaused = "Paused"
	// NoteLimited says that nodes wait for others to finish.
	NoteLimited = "ParallelismReached"
	// NoteFull is a node that lists as many images as it may.
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
	// NoteNoAnswer is a pull that the node does not tell about.
	NoteNoAnswer = "NoAnswer"
	// NoteReplaced is a job of a list that another takes the place of.
	NoteReplaced = "Replaced"
	// NoteNoSecret is a pull secret that does not exist.
	NoteNoSecret = "SecretMissing"
)
