package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Annotations of a ContainerRecreateRequest in this version, which are in the status in v1beta1.
const (
	// ContainerRecreateRequestSyncContainerStatusesKey holds the containers that started since the request,
	// a JSON list of ContainerRecreateRequestSyncContainerStatus.
	ContainerRecreateRequestSyncContainerStatusesKey = "crr.apps.kruise.io/sync-container-statuses"
	// ContainerRecreateRequestUnreadyAcquiredKey holds the time, in RFC 3339, when the pod was made not ready.
	// The finalizer of the same name says that it was.
	ContainerRecreateRequestUnreadyAcquiredKey = v1beta1.ContainerRecreateRequestUnreadyAcquiredKey
)

// What is equal in both versions.
type (
	// ContainerRecreateRequestContainer is v1beta1.ContainerRecreateRequestContainer.
	ContainerRecreateRequestContainer = v1beta1.ContainerRecreateRequestContainer
	// ProbeHandler is v1beta1.CRRProbeHandler.
	ProbeHandler = v1beta1.CRRProbeHandler
	// ContainerRecreateRequestContainerContext is v1beta1.ContainerRecreateRequestContainerContext.
	ContainerRecreateRequestContainerContext = v1beta1.ContainerRecreateRequestContainerContext
	// ContainerRecreateRequestSyncContainerStatus is v1beta1.ContainerRecreateRequestSyncContainerStatus.
	ContainerRecreateRequestSyncContainerStatus = v1beta1.ContainerRecreateRequestSyncContainerStatus
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
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished is how long the request stays after it completed. Without it, forever.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestFailurePolicyType says what follows from a container that cannot be stopped.
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
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// UnreadyGracePeriodSeconds makes the pod not ready, and waits so long before the first container is
	// stopped. Without it the pod stays ready, and nothing waits.
	// +optional
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// MinStartedSeconds is how long a new container must have run to count as started. Default 0.
	// +optional
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequestPhase is how far a request, or one of its containers, is.
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

// ContainerRecreateRequest has containers of a running pod stopped, so that the kubelet restarts them.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=crr
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="How far the request is."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The pod."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ContainerRecreateRequestSpec   `json:"spec,omitempty"`
	Status ContainerRecreateRequestStatus `json:"status,omitempty"`
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
