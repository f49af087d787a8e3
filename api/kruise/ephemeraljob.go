package kruise

// EphemeralContainerEnvKey is the environment variable, with the UID of its EphemeralJob, that distinguishes an
// ephemeral container of the job from others.
const EphemeralContainerEnvKey = "KRUISE_EJOB_ID"
