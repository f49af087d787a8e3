package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// BroadcastJobSpec is v1beta1.BroadcastJobSpec.
	BroadcastJobSpec = v1beta1.BroadcastJobSpec
	// BroadcastJobStatus is v1beta1.BroadcastJobStatus.
	BroadcastJobStatus = v1beta1.BroadcastJobStatus
	// BroadcastJobPhase is v1beta1.BroadcastJobPhase.
	BroadcastJobPhase = v1beta1.BroadcastJobPhase
	// CompletionPolicy is v1beta1.CompletionPolicy.
	CompletionPolicy = v1beta1.CompletionPolicy
	// CompletionPolicyType is v1beta1.CompletionPolicyType.
	CompletionPolicyType = v1beta1.CompletionPolicyType
	// FailurePolicy is v1beta1.FailurePolicy.
	FailurePolicy = v1beta1.FailurePolicy
	// FailurePolicyType is v1beta1.FailurePolicyType.
	FailurePolicyType = v1beta1.FailurePolicyType
	// JobCondition is v1beta1.JobCondition.
	JobCondition = v1beta1.JobCondition
	// JobConditionType is v1beta1.JobConditionType.
	JobConditionType = v1beta1.JobConditionType
)

// BroadcastJob runs a pod to its end on every node that fits.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=bcj
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desired",description="Nodes that fit the pod."
// +kubebuilder:printcolumn:name="Active",type="integer",JSONPath=".status.active",description="Pods that run."
// +kubebuilder:printcolumn:name="Succeeded",type="integer",JSONPath=".status.succeeded",description="Pods that ended well."
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="Pods that failed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type BroadcastJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BroadcastJobSpec   `json:"spec,omitempty"`
	Status BroadcastJobStatus `json:"status,omitempty"`
}

// BroadcastJobList is a list of BroadcastJobs.
//
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BroadcastJob `json:"items"`
}

// Default fills what the user left out, as the admission webhook does.
func (j *BroadcastJob) Default() { j.Spec.Default() }
