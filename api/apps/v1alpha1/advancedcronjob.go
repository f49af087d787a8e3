package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// AdvancedCronJobStatus is v1beta1.AdvancedCronJobStatus.
	AdvancedCronJobStatus = v1beta1.AdvancedCronJobStatus
	// BroadcastJobTemplateSpec is v1beta1.BroadcastJobTemplateSpec.
	BroadcastJobTemplateSpec = v1beta1.BroadcastJobTemplateSpec
	// ConcurrencyPolicy is v1beta1.ConcurrencyPolicy.
	ConcurrencyPolicy = v1beta1.ConcurrencyPolicy
	// TemplateKind is v1beta1.TemplateKind.
	TemplateKind = v1beta1.TemplateKind
)

// AdvancedCronJobSpec is what the user wants.
type AdvancedCronJobSpec struct {
	// Schedule in the five fields of cron, or a word such as @daily.
	Schedule string `json:"schedule"`
	// TimeZone of the schedule, an IANA name. Without it the zone of the controller's process counts.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// StartingDeadlineSeconds is how late a child may still be started. Without it there is no limit.
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy is Allow, Forbid or Replace. Default Allow.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Paused stops the creation of children. Default false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// SuccessfulJobsHistoryLimit is how many children that ended well are kept. Default 3.
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// FailedJobsHistoryLimit is how many failed children are kept. Default 1.
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// Template of the children. Its kind cannot be changed.
	Template CronJobTemplate `json:"template"`
}

// CronJobTemplate is the template of the children; exactly one member is set. None is set where the template
// is of a kind that only v1beta1 knows.
type CronJobTemplate struct {
	// JobTemplate creates Jobs. Its spec cannot be changed.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// BroadcastJobTemplate creates BroadcastJobs. Its spec cannot be changed.
	// +optional
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
}

// AdvancedCronJob creates Jobs or BroadcastJobs on a schedule.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=acj
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="The schedule in cron format."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="The kind of the children."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time that the last child was scheduled for."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AdvancedCronJobSpec   `json:"spec,omitempty"`
	Status AdvancedCronJobStatus `json:"status,omitempty"`
}

// AdvancedCronJobList is a list of AdvancedCronJobs.
//
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdvancedCronJob `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The concurrencyPolicy depends on the
// kind of the template, and so stays empty where this version has none. The rest of a BroadcastJob is filled
// when the child is created; pod templates are left to the API server, except for the restartPolicy of a
// BroadcastJob.
func (c *AdvancedCronJob) Default() {
	s := &c.Spec
	broadcast := s.Template.BroadcastJobTemplate
	if broadcast != nil && broadcast.Spec.Template.Spec.RestartPolicy == "" {
		broadcast.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if s.ConcurrencyPolicy == "" && (broadcast != nil || s.Template.JobTemplate != nil) {
		s.ConcurrencyPolicy = v1beta1.AllowConcurrent
	}
	setDefault(&s.Paused, false)
	setDefault(&s.SuccessfulJobsHistoryLimit, v1beta1.DefaultSuccessfulJobsHistoryLimit)
	setDefault(&s.FailedJobsHistoryLimit, v1beta1.DefaultFailedJobsHistoryLimit)
}
