package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestAdvancedCronJobDefault(t *testing.T) {
	filled := func(policy v1beta1.ConcurrencyPolicy, template v1beta1.CronJobTemplate) v1beta1.AdvancedCronJobSpec {
		return v1beta1.AdvancedCronJobSpec{
			ConcurrencyPolicy:          policy,
			Paused:                     pointer(false),
			SuccessfulJobsHistoryLimit: pointer[int32](3),
			FailedJobsHistoryLimit:     pointer[int32](1),
			Template:                   template,
		}
	}
	images := func(t v1beta1.ImagePullJobTemplate) v1beta1.CronJobTemplate {
		return v1beta1.CronJobTemplate{ImageListPullJobTemplate: &v1beta1.ImageListPullJobTemplateSpec{
			Spec: v1beta1.ImageListPullJobSpec{ImagePullJobTemplate: t},
		}}
	}
	for name, test := range map[string]struct{ in, want v1beta1.AdvancedCronJobSpec }{
		"jobs may run beside each other, and their template is left to the API server": {
			in: v1beta1.AdvancedCronJobSpec{Template: v1beta1.CronJobTemplate{JobTemplate: &batchv1.JobTemplateSpec{}}},
			want: filled(v1beta1.AllowConcurrent, v1beta1.CronJobTemplate{
				JobTemplate: &batchv1.JobTemplateSpec{},
			}),
		},
		"of a broadcast job only what the API server would spoil is filled": {
			in: v1beta1.AdvancedCronJobSpec{
				Template: v1beta1.CronJobTemplate{BroadcastJobTemplate: &v1beta1.BroadcastJobTemplateSpec{}},
			},
			want: filled(v1beta1.AllowConcurrent, v1beta1.CronJobTemplate{
				BroadcastJobTemplate: &v1beta1.BroadcastJobTemplateSpec{Spec: v1beta1.BroadcastJobSpec{
					Template: template(corev1.RestartPolicyOnFailure),
				}},
			}),
		},
		"pulls replace each other": {
			in: v1beta1.AdvancedCronJobSpec{Template: images(v1beta1.ImagePullJobTemplate{})},
			want: filled(v1beta1.ReplaceConcurrent, images(v1beta1.ImagePullJobTemplate{
				PullPolicy:       pullPolicy(600, 3),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Always},
				ImagePullPolicy:  v1beta1.PullIfNotPresent,
			})),
		},
		"a given completion policy keeps nothing else from being filled": {
			in: v1beta1.AdvancedCronJobSpec{
				ConcurrencyPolicy: v1beta1.ForbidConcurrent,
				Template: images(v1beta1.ImagePullJobTemplate{
					CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
					PullPolicy:       &v1beta1.PullPolicy{BackoffLimit: pointer[int32](0)},
				}),
			},
			want: filled(v1beta1.ForbidConcurrent, images(v1beta1.ImagePullJobTemplate{
				PullPolicy:       pullPolicy(600, 0),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
				ImagePullPolicy:  v1beta1.PullIfNotPresent,
			})),
		},
		"what the user says stays": {
			in: v1beta1.AdvancedCronJobSpec{
				ConcurrencyPolicy:          v1beta1.ReplaceConcurrent,
				Paused:                     pointer(true),
				SuccessfulJobsHistoryLimit: pointer[int32](0),
				FailedJobsHistoryLimit:     pointer[int32](0),
			},
			want: v1beta1.AdvancedCronJobSpec{
				ConcurrencyPolicy:          v1beta1.ReplaceConcurrent,
				Paused:                     pointer(true),
				SuccessfulJobsHistoryLimit: pointer[int32](0),
				FailedJobsHistoryLimit:     pointer[int32](0),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := v1beta1.AdvancedCronJob{Spec: test.in}
			job.Default()
			if diff := cmp.Diff(test.want, job.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
