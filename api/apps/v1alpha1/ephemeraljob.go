package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EphemeralJobFinalizerKey is the finalizer of an EphemeralJob.
const EphemeralJobFinalizerKey = "apps.kruise.io/ephemeralcontainers-cleanup"

// What an EphemeralJob means where it names nothing. These values are not written into the spec.
const (
	// DefaultEphemeralJobParallelism is how many pods run the containers at once.
	DefaultEphemeralJobParallelism = 1
	// DefaultEphemeralJobTTLSecondsAfterFinished is how long a job stays after it ended.
	DefaultEphemeralJobTTLSecondsAfterFinished = 1800
)

// EphemeralJobSpec is what the user wants.
type EphemeralJobSpec struct {
	// Selector of pods of the same namespace.
	Selector *metav1.LabelSelector `json:"selector"`
	// Replicas is how many of the pods get the containers at most. Without it all do.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Parallelism is how many pods run the containers at once. Without it one.
	// +optional
	Parallelism *int32 `json:"parallelism,omitempty"`
	// Template of what the pods get.
	Template EphemeralContainerTemplateSpec `json:"template"`
	// Paused stops adding containers.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ActiveDeadlineSeconds is how long the job may take from its start. Containers that run then go on.
	// Without it there is no limit.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished is how long the job stays after it ended; 0 deletes it at once. Without it
	// the job stays for 1800.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// EphemeralContainerTemplateSpec is what a pod gets.
type EphemeralContainerTemplateSpec struct {
	// EphemeralContainers to add to each pod, by name.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	EphemeralContainers []corev1.EphemeralContainer `json:"ephemeralContainers"`
}

// EphemeralJobPhase is how far a job is.
type EphemeralJobPhase string

const (
	// EphemeralJobWaiting is a job without pods, or whose containers have not started.
	EphemeralJobWaiting EphemeralJobPhase = "Waiting"
	// EphemeralJobRunning is a job with containers that run.
	EphemeralJobRunning EphemeralJobPhase = "Running"
	// EphemeralJobPaused is a job that adds no containers.
	EphemeralJobPaused EphemeralJobPhase = "Paused"
	// EphemeralJobSucceeded is a job that ended well in all pods.
	EphemeralJobSucceeded EphemeralJobPhase = "Succeeded"
	// EphemeralJobFailed is a job that failed.
	EphemeralJobFailed EphemeralJobPhase = "Failed"
	// EphemeralJobError is a job that cannot work.
	EphemeralJobError EphemeralJobPhase = "Error"
	// EphemeralJobUnknown is anything else.
	EphemeralJobUnknown EphemeralJobPhase = "Unknown"
)

// EphemeralJobStatus is what the controller found.
type EphemeralJobStatus struct {
	// Conditions of the job: Initialized, MatchedEmpty, JobSucceeded, JobFailed, JobError.
	// +optional
	Conditions []EphemeralJobCondition `json:"conditions,omitempty"`
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job ended; the controller ignores a job that has ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Phase is Waiting, Running, Paused, Succeeded, Failed, Error or Unknown; empty before the controller
	// saw the job.
	// +optional
	Phase EphemeralJobPhase `json:"phase"`
	// Matches counts the pods that get the containers.
	// +optional
	Matches int32 `json:"match"`
	// Running counts the pods where the containers run.
	// +optional
	Running int32 `json:"running"`
	// Succeeded counts the pods where the containers ended well.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Waiting counts the pods where the containers have not started.
	// +optional
	Waiting int32 `json:"waiting"`
	// Failed counts the pods where a container failed.
	// +optional
	Failed int32 `json:"failed"`
}

// EphemeralJobConditionType names a condition.
type EphemeralJobConditionType string

const (
	// EJobInitialized is True when the controller saw the job.
	EJobInitialized EphemeralJobConditionType = "Initialized"
	// EJobMatchedEmpty is True when no pod gets the containers.
	EJobMatchedEmpty EphemeralJobConditionType = "MatchedEmpty"
	// EJobSucceeded is True when the job ended well in all pods.
	EJobSucceeded EphemeralJobConditionType = "JobSucceeded"
	// EJobFailed is True when the job failed.
	EJobFailed EphemeralJobConditionType = "JobFailed"
	// EJobError is True when the job cannot work.
	EJobError EphemeralJobConditionType = "JobError"
)

// Reasons of conditions.
const (
	// EJobReasonInitialized is the reason of Initialized.
	EJobReasonInitialized = "Initialized"
	// EJobReasonMatchEmpty is the reason of MatchedEmpty.
	EJobReasonMatchEmpty = "MatchEmpty"
	// EJobReasonJobSucceeded is the reason of JobSucceeded.
	EJobReasonJobSucceeded = "JobSucceeded"
	// EJobReasonJobFailed is the reason of JobFailed when containers failed in all pods.
	EJobReasonJobFailed = "JobFailed"
	// EJobReasonCreateFailed is the reason of JobFailed when containers failed, or could not be added, in some pods.
	EJobReasonCreateFailed = "CreateFailed"
	// EJobReasonDeadlineExceeded is the reason of JobFailed when activeDeadlineSeconds have passed.
	EJobReasonDeadlineExceeded = "DeadlineExceeded"
	// EJobReasonError is the reason of JobError.
	EJobReasonError = "Error"
)

// EphemeralJobCondition is one condition.
type EphemeralJobCondition struct {
	// Type of the condition.
	Type EphemeralJobConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastProbeTime is when the condition was last written.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for machines.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// EphemeralJob adds ephemeral containers to running pods, some pods at a time, and watches them to their end.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=ejob
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="How far the job is."
// +kubebuilder:printcolumn:name="MATCH",type="integer",JSONPath=".status.match",description="Pods that get the containers."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="Pods where the containers ended well."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="Pods where a container failed."
// +kubebuilder:printcolumn:name="RUNNING",type="integer",JSONPath=".status.running",description="Pods where the containers run."
// +kubebuilder:printcolumn:name="WAITING",type="integer",JSONPath=".status.waiting",description="Pods where the containers have not started."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type EphemeralJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EphemeralJobSpec   `json:"spec,omitempty"`
	Status EphemeralJobStatus `json:"status,omitempty"`
}

// EphemeralJobList is a list of EphemeralJobs.
//
// +kubebuilder:object:root=true
type EphemeralJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EphemeralJob `json:"items"`
}
