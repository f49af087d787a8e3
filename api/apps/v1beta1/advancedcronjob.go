package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdvancedCronJobScheduledAtKey is the annotation with the scheduled time of a child, in RFC 3339. A child is a Job,
// BroadcastJob or ImageListPullJob that an AdvancedCronJob created.
const AdvancedCronJobScheduledAtKey = "apps.kruise.io/scheduled-at"

// Defaults of the history limits.
const (
	// DefaultSuccessfulJobsHistoryLimit is the number of succeeded children to keep.
	DefaultSuccessfulJobsHistoryLimit = 3
	// DefaultFailedJobsHistoryLimit is the number of failed children to keep.
	DefaultFailedJobsHistoryLimit = 1
)

// ConcurrencyPolicy specifies how to treat a scheduled time while an earlier child is active.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the child next to the earlier one.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent skips the child.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier child, then starts the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// AdvancedCronJobSpec is what the user wants.
type AdvancedCronJobSpec struct {
	// Schedule in the five fields of cron, or a word such as @daily.
	Schedule string `json:"schedule"`
	// TimeZone is the IANA time zone of the schedule. Default is the time zone of the controller process.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// StartingDeadlineSeconds is how late a child may still be started. Without it there is no limit.
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy is Allow, Forbid or Replace. Default Allow. With an imageListPullJobTemplate, Allow is
	// invalid and the default is Replace.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Paused stops the creation of children. Default false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// SuccessfulJobsHistoryLimit is the number of succeeded children to keep. Default 3.
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// FailedJobsHistoryLimit is how many failed children are kept. Default 1.
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// Template of the children. Its kind cannot be changed.
	Template CronJobTemplate `json:"template"`
}

// CronJobTemplate is the template of the children; exactly one member is set.
type CronJobTemplate struct {
	// JobTemplate creates Jobs. Its spec cannot be changed.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// BroadcastJobTemplate creates BroadcastJobs. Its spec cannot be changed.
	// +optional
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
	// ImageListPullJobTemplate creates ImageListPullJobs.
	// +optional
	ImageListPullJobTemplate *ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
}

// BroadcastJobTemplateSpec is the template of BroadcastJobs.
type BroadcastJobTemplateSpec struct {
	// Metadata of the children: their labels and annotations.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the children.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
}

// ImageListPullJobTemplateSpec is the template of ImageListPullJobs.
type ImageListPullJobTemplateSpec struct {
	// Metadata of the children: their labels and annotations.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the children. completionPolicy.ttlSecondsAfterFinished must not be set: the history limits
	// delete finished children.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
}

// TemplateKind is the kind of the children.
type TemplateKind string

const (
	// JobTemplate creates Jobs.
	JobTemplate TemplateKind = "Job"
	// BroadcastJobTemplate creates BroadcastJobs.
	BroadcastJobTemplate TemplateKind = "BroadcastJob"
	// ImageListPullJobTemplate creates ImageListPullJobs.
	ImageListPullJobTemplate TemplateKind = "ImageListPullJob"
)

// AdvancedCronJobStatus is what the controller found.
type AdvancedCronJobStatus struct {
	// Type is the kind of the children.
	// +optional
	Type TemplateKind `json:"type,omitempty"`
	// Active are the children that have not ended.
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// LastScheduleTime is the time that the last child was scheduled for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// AdvancedCronJob creates Jobs, BroadcastJobs or ImageListPullJobs on a schedule.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

// Default sets defaults, as the admission webhook does. It sets no defaults in pod templates, except the
// restartPolicy of a BroadcastJob; the API server does. Other fields of a BroadcastJob get their defaults when the
// controller creates the child.
func (c *AdvancedCronJob) Default() {
	s := &c.Spec
	if broadcast := s.Template.BroadcastJobTemplate; broadcast != nil {
		defaultRestartPolicy(&broadcast.Spec.Template)
	}
	images := s.Template.ImageListPullJobTemplate
	if images != nil {
		images.Spec.Default()
		// An ImageListPullJob leaves imagePullPolicy to its ImagePullJobs. OpenKruise sets the field in this template.
		if images.Spec.ImagePullPolicy == "" {
			images.Spec.ImagePullPolicy = PullIfNotPresent
		}
	}
	if s.ConcurrencyPolicy == "" {
		s.ConcurrencyPolicy = AllowConcurrent
		if images != nil {
			s.ConcurrencyPolicy = ReplaceConcurrent
		}
	}
	setDefault(&s.Paused, false)
	setDefault(&s.SuccessfulJobsHistoryLimit, DefaultSuccessfulJobsHistoryLimit)
	setDefault(&s.FailedJobsHistoryLimit, DefaultFailedJobsHistoryLimit)
}
