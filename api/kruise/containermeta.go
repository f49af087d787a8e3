package kruise

// RuntimeContainerMetaKey is the annotation in which a node daemon reports the state in the container runtime of
// a pod's containers: a RuntimeContainerMetaSet in JSON.
const RuntimeContainerMetaKey = "apps.kruise.io/runtime-containers-meta"

// RuntimeContainerMetaSet is the state in the container runtime of the containers of a pod.
type RuntimeContainerMetaSet struct {
	// Containers in the order of the pod's container statuses.
	Containers []RuntimeContainerMeta `json:"containers"`
}

// RuntimeContainerMeta is the state in the container runtime of one container.
type RuntimeContainerMeta struct {
	// Name of the container.
	Name string `json:"name"`
	// ContainerID is runtime://id.
	ContainerID string `json:"containerID"`
	// RestartCount of the container.
	RestartCount int32 `json:"restartCount"`
	// Hashes of what the container was started with.
	Hashes RuntimeContainerHashes `json:"hashes"`
}

// RuntimeContainerHashes identify what a container was started with.
type RuntimeContainerHashes struct {
	// PlainHash is the kubelet's hash of the container's spec.
	PlainHash uint64 `json:"plainHash"`
	// ExtractedEnvFromMetadataHash is the hash of the environment that comes from labels and annotations of
	// the pod; 0 while it is not known.
	ExtractedEnvFromMetadataHash uint64 `json:"extractedEnvFromMetadataHash,omitempty"`
}
