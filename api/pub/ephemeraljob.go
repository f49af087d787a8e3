package pub

// EphemeralContainerEnvKey is the environment variable, with the UID of its EphemeralJob, that tells an ephemeral
// container of the job from others.
const EphemeralContainerEnvKey = "KRUISE_EJOB_ID"
