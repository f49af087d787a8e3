package v1beta1

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultBroadcastJobParallelism is as good as no limit.
const DefaultBroadcastJobParallelism = math.MaxInt32

// CompletionPolicyType says whether a job ends.
type CompletionPolicyType string

const (
	// Always ends the job when all of its work is done.
	Always CompletionPolicyType = "Always"
	// Never lets the job go on, so that it serves nodes that join later.
	Never CompletionPolicyType = "Never"
)

// CompletionPolicy says when a job ends, and how long it stays.
type CompletionPolicy struct {
	// Type is Always or Never. Default Always.
	Type CompletionPolicyType `json:"type,omitempty"`
	// ActiveDeadlineSeconds is how long the job may take from its start. Only with type Always.
	// Without it there is no limit.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished is how long the job stays after it ended; 0 deletes it at once. Only with
	// type Always. Without it the job stays.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// FailurePolicyType says what follows from a failed pod.
type FailurePolicyType string

const (
	// FailurePolicyTypeFailFast ends the job and deletes the pods that still run.
	FailurePolicyTypeFailFast FailurePolicyType = "FailFast"
	// FailurePolicyTypeContinue goes on with the other nodes.
	FailurePolicyTypeContinue FailurePolicyType = "Continue"
	// FailurePolicyTypePause creates no more pods while there is a failed one.
	FailurePolicyTypePause FailurePolicyType = "Pause"
)

// FailurePolicy says what follows from a failed pod.
type FailurePolicy struct {
	// Type is FailFast, Continue or Pause. Default FailFast.
	Type FailurePolicyType `json:"type,omitempty"`
	// RestartLimit is how many restarts of its containers a pod with restartPolicy OnFailure may have
	// before it counts as failed. Default 0.
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobSpec is what the user wants.
type BroadcastJobSpec struct {
	// Parallelism is how many pods may run at once: a number, or a percentage of the nodes rounded up.
	// 0 creates none. Default 2147483647.
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// Template of the pods. Its restartPolicy is Never or OnFailure; default OnFailure.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
	// CompletionPolicy says when the job ends, and how long it stays.
	// +optional
	CompletionPolicy CompletionPolicy `json:"completionPolicy"`
	// Paused stops the creation of pods.
	Paused bool `json:"paused,omitempty"`
	// FailurePolicy says what follows from a failed pod.
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// BroadcastJobPhase is how far a job is.
type BroadcastJobPhase string

const (
	// PhaseRunning is a job that has pods to run.
	PhaseRunning BroadcastJobPhase = "running"
	// PhasePaused is a job that creates no pods, because of spec.paused or its failure policy.
	PhasePaused BroadcastJobPhase = "paused"
	// PhaseCompleted is a job that ran on every node.
	PhaseCompleted BroadcastJobPhase = "completed"
	// PhaseFailed is a job that ended for a failed pod or its deadline.
	PhaseFailed BroadcastJobPhase = "failed"
)

// BroadcastJobStatus is what the controller found.
type BroadcastJobStatus struct {
	// Conditions of the job: Complete, Failed.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job completed or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Active counts the pods that run.
	// +optional
	Active int32 `json:"active"`
	// Succeeded counts the pods that ended well.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed counts the pods that failed or restarted too often.
	// +optional
	Failed int32 `json:"failed"`
	// Desired counts the nodes that fit the pod.
	// +optional
	Desired int32 `json:"desired"`
	// Phase is running, paused, completed or failed; empty before the controller saw the job.
	// +optional
	Phase BroadcastJobPhase `json:"phase"`
}

// JobConditionType names a condition of a BroadcastJob.
type JobConditionType string

const (
	// JobComplete is True when the job ran on every node.
	JobComplete JobConditionType = "Complete"
	// JobFailed is True when the job ended for a failed pod or its deadline.
	JobFailed JobConditionType = "Failed"
)

// JobCondition is one condition.
type JobCondition struct {
	// Type of the condition.
	Type JobConditionType `json:"type"`
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

// BroadcastJob runs a pod to its end on every node that fits.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

// Default fills what the user left out. Of the template it fills the restartPolicy, because the default of
// the API server cannot work here; the rest is left to the API server.
func (s *BroadcastJobSpec) Default() {
	setDefault(&s.Parallelism, intstr.FromInt32(DefaultBroadcastJobParallelism))
	if s.CompletionPolicy.Type == "" {
		s.CompletionPolicy.Type = Always
	}
	if s.FailurePolicy.Type == "" {
		s.FailurePolicy.Type = FailurePolicyTypeFailFast
	}
	defaultRestartPolicy(&s.Template)
}

// defaultRestartPolicy keeps the API server from making it Always, which a pod that shall end cannot have.
func defaultRestartPolicy(template *corev1.PodTemplateSpec) {
	if template.Spec.RestartPolicy == "" {
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
}
