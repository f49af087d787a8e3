package schedule

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

const (
	// maxCronName is the longest name of an AdvancedCronJob.
	maxCronName = 63
	// cronNameLetters are the characters that the name can have. API servers admit no capitals.
	cronNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	// templateRequired is the fault of an object without a template.
	templateRequired = "must have one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate"
	// maxPullDeadline is the longest deadline of the children that pull images, a day.
	maxPullDeadline = 86400
)

// Validate returns what is invalid in an AdvancedCronJob, or would be invalid in the ImageListPullJobs and
// BroadcastJobs that it creates. Templates of pods and of Jobs are for the API server.
func Validate(job *appsv1beta1.AdvancedCronJob) field.ErrorList {
	var faults field.ErrorList
	if at := field.NewPath("metadata", "name"); len(job.Name) > maxCronName {
		faults = append(faults, field.TooLong(at, job.Name, maxCronName))
	} else if job.Name != "" && strings.Trim(job.Name, cronNameLetters) != "" {
		faults = append(faults, field.Invalid(at, job.Name, "must have letters, digits and dashes alone"))
	}
	at, spec := field.NewPath("spec"), &job.Spec
	faults = append(faults, checkSchedule(spec, at)...)
	faults = append(faults, checkHistory(spec, at)...)
	return append(faults, checkCronTemplate(spec, at)...)
}

// checkSchedule validates when children are created.
func checkSchedule(spec *appsv1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if spec.Schedule == "" {
		faults = append(faults, field.Required(at.Child("schedule"), "five fields, or a descriptor as @daily"))
	} else if _, err := Parse(spec.Schedule, In{}); err != nil {
		faults = append(faults, field.Invalid(at.Child("schedule"), spec.Schedule, err.Error()))
	}
	if spec.TimeZone == nil {
		return faults
	}
	if HasZone(spec.Schedule) {
		faults = append(faults,
			field.Invalid(at.Child("schedule"), spec.Schedule, "must not have a time zone beside spec.timeZone"))
	}
	if err := ValidateZone(*spec.TimeZone); err != nil {
		faults = append(faults, field.Invalid(at.Child("timeZone"), *spec.TimeZone, err.Error()))
	}
	return faults
}

// checkHistory validates the numbers of a spec.
func checkHistory(spec *appsv1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if d := spec.StartingDeadlineSeconds; d != nil && *d < 0 {
		faults = append(faults, field.Invalid(at.Child("startingDeadlineSeconds"), *d, "must not be negative"))
	} else if d != nil && *d > MaxDeadlineSeconds {
		faults = append(faults, field.Invalid(at.Child("startingDeadlineSeconds"), *d,
			fmt.Sprintf("must be at most %d", MaxDeadlineSeconds)))
	}
	for _, limit := range []struct {
		name  string
		value *int32
	}{
		{"successfulJobsHistoryLimit", spec.SuccessfulJobsHistoryLimit},
		{"failedJobsHistoryLimit", spec.FailedJobsHistoryLimit},
	} {
		if limit.value != nil && *limit.value < 0 {
			faults = append(faults, field.Invalid(at.Child(limit.name), *limit.value, "must not be negative"))
		}
	}
	return faults
}

// checkCronTemplate validates what is created.
func checkCronTemplate(spec *appsv1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	here, given := at.Child("template"), 0
	for _, set := range []bool{
		spec.Template.JobTemplate != nil, spec.Template.BroadcastJobTemplate != nil,
		spec.Template.ImageListPullJobTemplate != nil,
	} {
		if set {
			given++
		}
	}
	switch given {
	case 0:
		faults = append(faults, field.Forbidden(here, templateRequired))
	case 1:
	default:
		faults = append(faults, field.Forbidden(here,
			"must not have more than one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate"))
	}
	if p := spec.ConcurrencyPolicy; p == appsv1beta1.AllowConcurrent && spec.Template.ImageListPullJobTemplate != nil {
		faults = append(faults,
			field.Invalid(at.Child("concurrencyPolicy"), p, "must be Replace or Forbid with an imageListPullJobTemplate"))
	}
	if job := spec.Template.BroadcastJobTemplate; job != nil {
		faults = append(faults, validation.BroadcastJobSpec(&job.Spec, here.Child("broadcastJobTemplate", "spec"))...)
	}
	if images := spec.Template.ImageListPullJobTemplate; images != nil {
		faults = append(faults, checkPullTemplate(&images.Spec, here.Child("imageListPullJobTemplate", "spec"))...)
	}
	return faults
}

// checkPullTemplate validates the spec of ImageListPullJobs that end, and that stay afterwards.
func checkPullTemplate(template *appsv1beta1.ImageListPullJobSpec, at *field.Path) field.ErrorList {
	spec := template.DeepCopy()
	spec.Default()
	faults := validation.CheckNodeSelection(&spec.ImagePullJobTemplate, at)
	faults = append(faults, validation.CheckImages(spec.Images, at.Child("images"))...)
	here, policy := at.Child("completionPolicy"), spec.CompletionPolicy
	if policy.Type == appsv1beta1.Never {
		return append(faults,
			field.NotSupported(here.Child("type"), policy.Type, []appsv1beta1.CompletionPolicyType{appsv1beta1.Always}))
	}
	faults = append(faults, validation.CheckPull(&spec.ImagePullJobTemplate, at)...)
	if d := policy.ActiveDeadlineSeconds; d != nil && *d > maxPullDeadline {
		faults = append(faults,
			field.Invalid(here.Child("activeDeadlineSeconds"), *d, fmt.Sprintf("must be at most %d", maxPullDeadline)))
	}
	if policy.TTLSecondsAfterFinished != nil {
		faults = append(faults, field.Forbidden(here.Child("ttlSecondsAfterFinished"),
			"must not be set: the history limits of the schedule count finished children"))
	}
	return faults
}

// ValidateChildren returns why no child of an AdvancedCronJob can be created, whatever its schedule.
func ValidateChildren(job *appsv1beta1.AdvancedCronJob) field.ErrorList {
	if d := job.Spec.StartingDeadlineSeconds; d != nil && *d < 0 { // every tick would be late before it comes
		return field.ErrorList{field.Invalid(field.NewPath("spec", "startingDeadlineSeconds"), *d, "must not be negative")}
	}
	template, at := &job.Spec.Template, field.NewPath("spec", "template")
	switch {
	case template.JobTemplate != nil:
		return nil
	case template.ImageListPullJobTemplate != nil:
		spec := template.ImageListPullJobTemplate.Spec.DeepCopy()
		spec.Default()
		return validation.ImageListPullJobSpec(spec, at.Child("imageListPullJobTemplate", "spec"))
	case template.BroadcastJobTemplate != nil:
		return validation.BroadcastJobSpec(&template.BroadcastJobTemplate.Spec, at.Child("broadcastJobTemplate", "spec"))
	}
	return field.ErrorList{field.Forbidden(at, templateRequired)}
}

// ValidateUpdate returns the changes that are forbidden: those of templates, but for metadata and for the images to
// pull. The reference does not store the metadata of BroadcastJobs.
func ValidateUpdate(job, stored *appsv1beta1.AdvancedCronJob) field.ErrorList {
	now, was := job.DeepCopy(), stored.DeepCopy()
	now.Default()
	was.Default()
	if a, b := now.Spec.Template.JobTemplate, was.Spec.Template.JobTemplate; a != nil && b != nil {
		b.ObjectMeta = a.ObjectMeta
	}
	if a, b := now.Spec.Template.BroadcastJobTemplate, was.Spec.Template.BroadcastJobTemplate; a != nil && b != nil {
		b.ObjectMeta = a.ObjectMeta
	}
	if images := &was.Spec.Template.ImageListPullJobTemplate; *images != nil {
		*images, now.Spec.Template.ImageListPullJobTemplate = nil, nil
	}
	if equality.Semantic.DeepEqual(now.Spec.Template, was.Spec.Template) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), strings.Join([]string{
		"updates of fields other than schedule, concurrencyPolicy, successfulJobsHistoryLimit, failedJobsHistoryLimit,",
		"startingDeadlineSeconds, paused, timeZone, template.imageListPullJobTemplate and the metadata of " +
			"templates are forbidden",
	}, " "))}
}
