package imagelistpulljob

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// invalid returns the first fault for which the webhook rejects a list that has its defaults, or all of its jobs; nil if there is none.
// An image that is no reference is no such fault: the plan reports it, and the other images get their jobs. Neither are too many pull
// secrets, of which the jobs get the first ones, or too long a sandboxConfig, which the jobs do not get.
func invalid(list *v1beta1.ImageListPullJob) error {
	for _, fault := range validation.ImageListPullJob(list) {
		ofImage := strings.HasPrefix(fault.Field, "spec.images[") && fault.Type != field.ErrorTypeDuplicate
		if !ofImage && fault.Field != "spec.pullSecrets" && fault.Field != "spec.sandboxConfig" {
			return fault
		}
	}
	return nil
}
