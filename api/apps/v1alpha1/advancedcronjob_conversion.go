package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with c.
func (c *AdvancedCronJob) ConvertTo(hub *v1beta1.AdvancedCronJob) error {
	return roundtrip.Up(c, hub, advancedCronJobUp, advancedCronJobDown)
}

// ConvertFrom fills c with hub.
func (c *AdvancedCronJob) ConvertFrom(hub *v1beta1.AdvancedCronJob) error {
	return roundtrip.Down(hub, c, advancedCronJobUp, advancedCronJobDown)
}

func advancedCronJobUp(c *AdvancedCronJob, hub *v1beta1.AdvancedCronJob) {
	hub.ObjectMeta = c.ObjectMeta
	hub.Status = c.Status
	hub.Spec = v1beta1.AdvancedCronJobSpec{
		Schedule:                   c.Spec.Schedule,
		TimeZone:                   c.Spec.TimeZone,
		StartingDeadlineSeconds:    c.Spec.StartingDeadlineSeconds,
		ConcurrencyPolicy:          c.Spec.ConcurrencyPolicy,
		Paused:                     c.Spec.Paused,
		SuccessfulJobsHistoryLimit: c.Spec.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit:     c.Spec.FailedJobsHistoryLimit,
		Template: v1beta1.CronJobTemplate{
			JobTemplate:          c.Spec.Template.JobTemplate,
			BroadcastJobTemplate: c.Spec.Template.BroadcastJobTemplate,
		},
	}
}

func advancedCronJobDown(hub *v1beta1.AdvancedCronJob, c *AdvancedCronJob) {
	c.ObjectMeta = hub.ObjectMeta
	c.Status = hub.Status
	c.Spec = AdvancedCronJobSpec{
		Schedule:                   hub.Spec.Schedule,
		TimeZone:                   hub.Spec.TimeZone,
		StartingDeadlineSeconds:    hub.Spec.StartingDeadlineSeconds,
		ConcurrencyPolicy:          hub.Spec.ConcurrencyPolicy,
		Paused:                     hub.Spec.Paused,
		SuccessfulJobsHistoryLimit: hub.Spec.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit:     hub.Spec.FailedJobsHistoryLimit,
		Template: CronJobTemplate{
			JobTemplate:          hub.Spec.Template.JobTemplate,
			BroadcastJobTemplate: hub.Spec.Template.BroadcastJobTemplate,
		},
	}
}
