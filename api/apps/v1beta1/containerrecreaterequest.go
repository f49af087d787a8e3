package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of a ContainerRecreateRequest.
const (
	// ContainerRecreateRequestPodUIDKey is the label with the UID of the pod. It cannot be changed.
	ContainerRecreateRequestPodUIDKey = "crr.apps.kruise.io/pod-uid"
	// ContainerRecreateRequestNodeNameKey is the label with the node of the pod, which daemons select by.
	// It cannot be changed.
	ContainerRecreateRequestNodeNameKey = "crr.apps.kruise.io/node-name"
	// ContainerRecreateRequestActiveKey is the label, with value "true", of a request that is not completed.
	ContainerRecreateRequestActiveKey = "crr.apps.kruise.io/active"
	// ContainerRecreateRequestUnreadyAcquiredKey is the finalizer of a request that made its pod not ready.
	ContainerRecreateRequestUnreadyAcquiredKey = "crr.apps.kruise.io/unready-acquired"
)

// The condition of a request that waits, with its pod not ready, before the first container is stopped.
const (
	// ContainerRecreateRequestPreRecreateGrace is the type of the condition. The wait begins at its
	// lastTransitionTime.
	ContainerRecreateRequestPreRecreateGrace = "PreRecreateGrace"
	// ContainerRecreateRequestPreRecreateGraceReason is its reason.
	ContainerRecreateRequestPreRecreateGraceReason = "PreRecreateGrace"
	// ContainerRecreateRequestPreRecreateGraceMessage is its message.
	ContainerRecreateRequestPreRecreateGraceMessage = "Pod has been forced to not-ready for " +
		"unreadyGracePeriodSeconds drain"
)

// ContainerRecreateRequestSpec is what the user wants. It cannot be changed.
type ContainerRecreateRequestSpec struct {
	// PodName is a pod of the same namespace.
	PodName string `json:"podName"`
	// Containers of the pod to restart, each once, in this order.
	Containers []ContainerRecreateRequestContainer `json:"containers"`
	// Strategy says how.
	// +optional
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`
	// ActiveDeadlineSeconds is how long the request may take from its creation, at least 3. Without it
	// there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished is how long the request stays after it completed. Without it, forever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is one container to restart. All but the name is filled at admission
// from the pod, and refused when a user fills it.
type ContainerRecreateRequestContainer struct {
	// Name of the container.
	Name string `json:"name"`
	// PreStop is the hook to run before the container is stopped.
	// +optional
	PreStop *CRRProbeHandler `json:"preStop,omitempty"`
	// Ports of the container, for a hook that names one.
	// +optional
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// StatusContext identifies the container to stop, as opposed to the one that follows it.
	// +optional
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// CRRProbeHandler is a hook; one member is set.
type CRRProbeHandler struct {
	// Exec runs a command in the container.
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`
	// HTTPGet sends a request to the container.
	// +optional
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// TCPSocket opens a connection to the container. As a hook it is invalid and fails.
	// +optional
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
}

// ContainerRecreateRequestContainerContext is the container that ran when the request was created.
type ContainerRecreateRequestContainerContext struct {
	// ContainerID is runtime://id.
	ContainerID string `json:"containerID"`
	// RestartCount of the container.
	RestartCount int32 `json:"restartCount"`
}

// ContainerRecreateRequestFailurePolicyType says what follows from a container that cannot be stopped.
// +kubebuilder:validation:Enum=Fail;Ignore
type ContainerRecreateRequestFailurePolicyType string

const (
	// ContainerRecreateRequestFailurePolicyFail completes the request at once.
	ContainerRecreateRequestFailurePolicyFail ContainerRecreateRequestFailurePolicyType = "Fail"
	// ContainerRecreateRequestFailurePolicyIgnore goes on with the next container.
	ContainerRecreateRequestFailurePolicyIgnore ContainerRecreateRequestFailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy is how containers are restarted.
type ContainerRecreateRequestStrategy struct {
	// FailurePolicy is Fail or Ignore. Default Fail.
	// +optional
	FailurePolicy ContainerRecreateRequestFailurePolicyType `json:"failurePolicy,omitempty"`
	// OrderedRecreate stops a container only after the previous one has restarted.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// ForceRecreate stops a container also when it has restarted since the request was created.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`
	// TerminationGracePeriodSeconds is the time that a container has to stop. Default that of the pod.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// UnreadyGracePeriodSeconds makes the pod not ready, and waits so long before the first container is
	// stopped. Without it the pod stays ready, and nothing waits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// MinStartedSeconds is how long a new container must have run to count as started. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequestPhase is how far a request, or one of its containers, is.
// +kubebuilder:validation:Enum=Pending;Recreating;Succeeded;Failed;Completed
type ContainerRecreateRequestPhase string

const (
	// ContainerRecreateRequestPending has not begun.
	ContainerRecreateRequestPending ContainerRecreateRequestPhase = "Pending"
	// ContainerRecreateRequestRecreating is under way.
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	// ContainerRecreateRequestSucceeded is a container that restarted.
	ContainerRecreateRequestSucceeded ContainerRecreateRequestPhase = "Succeeded"
	// ContainerRecreateRequestFailed is a container that could not be stopped.
	ContainerRecreateRequestFailed ContainerRecreateRequestPhase = "Failed"
	// ContainerRecreateRequestCompleted is a request that ended, well or not.
	ContainerRecreateRequestCompleted ContainerRecreateRequestPhase = "Completed"
)

// ContainerRecreateRequestStatus is what was done.
type ContainerRecreateRequestStatus struct {
	// Phase is Pending, Recreating or Completed.
	Phase ContainerRecreateRequestPhase `json:"phase"`
	// CompletionTime is when the request ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Message is why the request ended early.
	// +optional
	Message string `json:"message,omitempty"`
	// ContainerRecreateStates has one entry for each container of the spec, in the same order.
	// +optional
	ContainerRecreateStates []ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`
	// ContainerStatusSnapshot is the status in the pod of the containers that started since the request.
	// +optional
	ContainerStatusSnapshot []ContainerRecreateRequestSyncContainerStatus `json:"containerStatusSnapshot,omitempty"`
	// Conditions of the request: PreRecreateGrace.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateRequestContainerRecreateState is what was done to one container.
type ContainerRecreateRequestContainerRecreateState struct {
	// Name of the container.
	Name string `json:"name"`
	// Phase is Pending, Recreating, Succeeded or Failed.
	Phase ContainerRecreateRequestPhase `json:"phase"`
	// Message is why the container could not be stopped.
	// +optional
	Message string `json:"message,omitempty"`
	// IsKilled says that the container was stopped.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
}

// ContainerRecreateRequestSyncContainerStatus is one container that started since the request.
type ContainerRecreateRequestSyncContainerStatus struct {
	// Name of the container.
	Name string `json:"name"`
	// Ready says that the container is ready.
	Ready bool `json:"ready"`
	// RestartCount of the container.
	RestartCount int32 `json:"restartCount"`
	// ContainerID is runtime://id.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
}

// ContainerRecreateRequest has containers of a running pod stopped, so that the kubelet restarts them.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=crr
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="How far the request is."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The pod."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ContainerRecreateRequestSpec `json:"spec,omitempty"`
	// Status is left out until a component writes it: the schema refuses an empty phase, and with it every
	// change of an object that came from v1alpha1.
	// +optional
	Status ContainerRecreateRequestStatus `json:"status,omitzero"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ContainerRecreateRequest `json:"items"`
}

// Default fills what the user left out of a new request, as the admission webhook does; what it takes from
// the pod is not part of it.
func (r *ContainerRecreateRequest) Default() {
	setDefault(&r.Spec.Strategy, ContainerRecreateRequestStrategy{})
	if r.Spec.Strategy.FailurePolicy == "" {
		r.Spec.Strategy.FailurePolicy = ContainerRecreateRequestFailurePolicyFail
	}
}
