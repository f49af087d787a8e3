package kruise

// Labels of a pod of a BroadcastJob; together they select the pods of one job.
const (
	// BroadcastJobNameKey holds the name of the job.
	BroadcastJobNameKey = "broadcastjob-name"
	// BroadcastJobControllerUIDKey holds the UID of the job.
	BroadcastJobControllerUIDKey = "broadcastjob-controller-uid"
)
