package schedule_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzAdvancedCronJob holds the laws of the rules of AdvancedCronJobs.
func FuzzAdvancedCronJob(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.AdvancedCronJob, *appsv1beta1.AdvancedCronJob]{
		Check: func(job *appsv1beta1.AdvancedCronJob) field.ErrorList {
			_ = schedule.ValidateChildren(job)
			return schedule.Validate(job)
		},
		Update: schedule.ValidateUpdate,
	},
		`{"schedule":"TZ=","timeZone":"","startingDeadlineSeconds":-1,"template":{"jobTemplate":{},`+
			`"broadcastJobTemplate":{"spec":{"parallelism":"x"}},"imageListPullJobTemplate":{"spec":{"images":[""]}}}}`,
	)
}
