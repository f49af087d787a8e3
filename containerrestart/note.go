package containerrestart

// Note says why a request waits or ends, or what is out of the ordinary.
type Note struct {
	// Code is the reason in one word, for events and conditions; the constants list them.
	Code string
	// Object is the name of the request; of the pod where no request is about.
	Object string
	// Text is a sentence.
	Text string
}

// The codes of notes.
const (
	// NoteQueued waits for another request of the same pod.
	NoteQueued = "RecreateQueued"
	// NoteGrace waits while the pod leaves traffic.
	NoteGrace = "RecreateGracePeriod"
	// NoteNoGate is a pod that cannot be taken out of traffic, as it lacks the readiness gate.
	NoteNoGate = "RecreateNoReadinessGate"
	// NoteUnreadable is something that another writer left, and that cannot be read.
	NoteUnreadable = "RecreateUnreadable"
	// NoteStopping waits for a container to stop.
	NoteStopping = "RecreateStopping"
	// NoteNotFound waits for a container that the runtime does not have.
	NoteNotFound = "RecreateNotFound"
	// NoteStarting waits for a new container to be up.
	NoteStarting = "RecreateStarting"
	// NoteEnded is a request that ended early; the text is its message.
	NoteEnded = "RecreateEnded"
	// NoteNoEnv waits until the environment of a container's process is read.
	NoteNoEnv = "RecreateEnvUnread"
	// NoteLaunchOrder waits for containers of a higher launch priority.
	NoteLaunchOrder = "RecreateLaunchOrder"
)
