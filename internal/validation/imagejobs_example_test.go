package validation_test

import (
	"fmt"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// A reconciler does not act on a spec that the webhook would reject.
func ExampleImagePullJob() {
	job := &appsv1beta1.ImagePullJob{}
	job.Spec.Image = "nginx:1.27"
	job.Default()
	job.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	for _, fault := range validation.ImagePullJob(job) {
		fmt.Println(fault)
	}
	// Output: spec.completionPolicy.activeDeadlineSeconds: Invalid value: 60: must not be less than pullPolicy.timeoutSeconds, which is 600
}
