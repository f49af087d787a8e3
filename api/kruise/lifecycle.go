package kruise

// Lifecycle holds a pod at three points of its life until the hook's labels or finalizers say go.
type Lifecycle struct {
	// PreDelete holds a pod before it is deleted, for as long as the hook matches the pod.
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`
	// InPlaceUpdate holds a pod before and after an in-place update: before, while the hook matches;
	// after, until it matches again.
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`
	// PreNormal holds a new pod until the hook matches; only then the pod counts as available.
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook matches a pod that carries all of its labels and finalizers.
type LifecycleHook struct {
	// LabelsHandler are labels with their exact values.
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`
	// FinalizersHandler are finalizer names.
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`
	// MarkPodNotReady takes the pod out of traffic while it is held.
	// It acts on InPlaceUpdate and PreDelete only.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// LifecycleState is the value of the label LifecycleStateKey on a pod.
type LifecycleState string

// The states of a pod, in the order in which it passes through them. A pod without the label is in state Normal.
const (
	LifecycleStatePreparingNormal LifecycleState = "PreparingNormal"
	LifecycleStateNormal          LifecycleState = "Normal"
	LifecycleStatePreparingUpdate LifecycleState = "PreparingUpdate"
	LifecycleStateUpdating        LifecycleState = "Updating"
	LifecycleStateUpdated         LifecycleState = "Updated"
	LifecycleStatePreparingDelete LifecycleState = "PreparingDelete"
)

// LifecycleTimestampKey is the annotation with the time at which the LifecycleState last changed, in RFC 3339.
const LifecycleTimestampKey = "lifecycle.apps.kruise.io/timestamp"
