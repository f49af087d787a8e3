package schedule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// cron is a valid object without a template.
const (
	cronOfJobs   = `{"metadata":{"namespace":"shop","name":"web"},"spec":{"schedule":"*/5 * * * *","template":{"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}}}}`
	cronOfPulls  = `{"metadata":{"namespace":"shop","name":"web"},"spec":{"schedule":"@daily","template":{"imageListPullJobTemplate":{"spec":{"images":["web:1"]}}}}}`
	cronOfNodes  = `{"metadata":{"namespace":"shop","name":"web"},"spec":{"schedule":"@daily","template":{"broadcastJobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}}}}`
	pullTemplate = "spec.template.imageListPullJobTemplate.spec"
)

func TestAdvancedCronJob(t *testing.T) {
	spec := func(text string) string { return `{"spec":{` + text + `}}` }
	pulls := func(text string) string {
		return spec(`"template":{"imageListPullJobTemplate":{"spec":{` + text + `}}}`)
	}
	for why, c := range map[string]struct {
		object, patch string
		want          []string
	}{
		"Jobs":          {cronOfJobs, ``, nil},
		"BroadcastJobs": {cronOfNodes, ``, nil},
		"pulls":         {cronOfPulls, ``, nil},
		"every field": {
			cronOfJobs,
			spec(`"timeZone":"Asia/Shanghai","startingDeadlineSeconds":0,"concurrencyPolicy":"Forbid","paused":true,"successfulJobsHistoryLimit":0,"failedJobsHistoryLimit":0`),
			nil,
		},
		"a zone in front":         {cronOfJobs, spec(`"schedule":"TZ=Asia/Shanghai 0 10 * * ?"`), nil},
		"a name of 63 characters": {cronOfJobs, `{"metadata":{"name":"` + strings.Repeat("a", 63) + `"}}`, nil},
		"a name of 64 characters": {
			cronOfJobs, `{"metadata":{"name":"` + strings.Repeat("a", 64) + `"}}`, []string{"metadata.name: Too long"},
		},
		"a name with a dot": {
			cronOfJobs, `{"metadata":{"name":"a.b"}}`, []string{"metadata.name: Invalid value"},
		},
		"no schedule": {cronOfJobs, spec(`"schedule":""`), []string{"spec.schedule: Required value"}},
		"an unknown zone": {
			cronOfJobs, spec(`"timeZone":"Mars/Olympus"`), []string{"spec.timeZone: Invalid value"},
		},
		"two zones": {
			cronOfJobs, spec(`"timeZone":"UTC","schedule":"TZ=UTC @daily"`), []string{"spec.schedule: Invalid value"},
		},
		"negative numbers": {
			cronOfJobs, spec(`"startingDeadlineSeconds":-1,"successfulJobsHistoryLimit":-1,"failedJobsHistoryLimit":-1`),
			[]string{
				"spec.startingDeadlineSeconds: Invalid value", "spec.successfulJobsHistoryLimit: Invalid value",
				"spec.failedJobsHistoryLimit: Invalid value",
			},
		},
		"a deadline of 292 years": {cronOfJobs, spec(`"startingDeadlineSeconds":9223372036`), nil},
		"a deadline no duration can hold": {
			cronOfJobs, spec(`"startingDeadlineSeconds":9223372037`), []string{"spec.startingDeadlineSeconds: Invalid value"},
		},
		"no template": {
			cronOfJobs, spec(`"template":{"jobTemplate":null}`), []string{"spec.template: Forbidden"},
		},
		"two templates": {
			cronOfJobs, spec(`"template":{"broadcastJobTemplate":{"spec":{}}}`), []string{"spec.template: Forbidden"},
		},
		"pods that run for ever": {
			cronOfNodes, spec(`"template":{"broadcastJobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Always"}}}}}`),
			[]string{"spec.template.broadcastJobTemplate.spec.template.spec.restartPolicy: Unsupported value"},
		},
		"pulls beside each other": {
			cronOfPulls, spec(`"concurrencyPolicy":"Allow"`), []string{"spec.concurrencyPolicy: Invalid value"},
		},
		"pulls one after the other": {cronOfPulls, spec(`"concurrencyPolicy":"Forbid"`), nil},
		"no image": {
			cronOfPulls, pulls(`"images":["Not An Image"]`), []string{pullTemplate + ".images[0]: Invalid value"},
		},
		"a time to live": {
			cronOfPulls, pulls(`"completionPolicy":{"ttlSecondsAfterFinished":1}`),
			[]string{pullTemplate + ".completionPolicy.ttlSecondsAfterFinished: Forbidden"},
		},
		"pulls without an end": {
			cronOfPulls, pulls(`"completionPolicy":{"type":"Never"}`),
			[]string{pullTemplate + ".completionPolicy.type: Unsupported value"},
		},
		"more than a day": {
			cronOfPulls, pulls(`"completionPolicy":{"activeDeadlineSeconds":86401}`),
			[]string{pullTemplate + ".completionPolicy.activeDeadlineSeconds: Invalid value"},
		},
		"less than one attempt": {
			cronOfPulls, pulls(`"completionPolicy":{"activeDeadlineSeconds":599}`),
			[]string{pullTemplate + ".completionPolicy.activeDeadlineSeconds: Invalid value"},
		},
		"nodes and pods": {
			cronOfPulls, pulls(`"selector":{},"podSelector":{}`), []string{pullTemplate + ".selector: Forbidden"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			job := &appsv1beta1.AdvancedCronJob{}
			validationtest.Patched(t, c.object, c.patch, job)
			before := validationtest.Encode(t, job)
			got := validationtest.Places(schedule.Validate(job))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if children := schedule.ValidateChildren(job); len(got) == 0 && len(children) > 0 {
				t.Errorf("a valid object can have no child: %v", children)
			}
			if diff := cmp.Diff(before, validationtest.Encode(t, job)); diff != "" {
				t.Errorf("the input has changed:\n%s", diff)
			}
		})
	}
}

// Templates stay as they are, but for the images to pull.
func TestAdvancedCronJobUpdate(t *testing.T) {
	for why, c := range map[string]struct {
		object, patch string
		forbidden     bool
	}{
		"nothing": {cronOfJobs, ``, false},
		"schedule, limits and pause": {
			cronOfJobs,
			`{"spec":{"schedule":"@daily","timeZone":"UTC","paused":true,"concurrencyPolicy":"Forbid","startingDeadlineSeconds":7,"successfulJobsHistoryLimit":7,"failedJobsHistoryLimit":7}}`,
			false,
		},
		"the pods of Jobs": {
			cronOfJobs, `{"spec":{"template":{"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}}}}`,
			true,
		},
		"the labels of Jobs": {
			cronOfJobs, `{"spec":{"template":{"jobTemplate":{"metadata":{"labels":{"a":"b"}}}}}}`, false,
		},
		"the pods of BroadcastJobs": {
			cronOfNodes,
			`{"spec":{"template":{"broadcastJobTemplate":{"metadata":{"labels":{"a":"b"}},"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}}}}`,
			true,
		},
		"a kind more": {
			cronOfJobs, `{"spec":{"template":{"imageListPullJobTemplate":{"spec":{"images":["a"]}}}}}`, true,
		},
		"another kind": {
			cronOfPulls, `{"spec":{"template":{"imageListPullJobTemplate":null,"broadcastJobTemplate":{"spec":{}}}}}`, true,
		},
		"images": {
			cronOfPulls, `{"spec":{"template":{"imageListPullJobTemplate":{"spec":{"images":["a","b"],"parallelism":3}}}}}`,
			false,
		},
		"a default": {
			cronOfNodes, `{"spec":{"template":{"broadcastJobTemplate":{"metadata":{},"spec":{"paused":false}}}}}`, false,
		},
	} {
		t.Run(why, func(t *testing.T) {
			stored, now := &appsv1beta1.AdvancedCronJob{}, &appsv1beta1.AdvancedCronJob{}
			validationtest.Patched(t, c.object, ``, stored)
			validationtest.Patched(t, c.object, c.patch, now)
			faults := schedule.ValidateUpdate(now, stored)
			if (len(faults) > 0) != c.forbidden || c.forbidden && faults[0].Field != "spec" {
				t.Errorf("got %v", faults)
			}
		})
	}
}
