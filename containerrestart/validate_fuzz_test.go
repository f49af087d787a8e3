package containerrestart_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzCheck holds the laws of the rules of ContainerRecreateRequests.
func FuzzCheck(f *testing.F) {
	type request = appsv1beta1.ContainerRecreateRequest
	validationtest.Fuzz(f, validationtest.Rules[request, *request]{
		Check: containerrestart.Check,
		Update: func(r, stored *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
			return containerrestart.CheckUpdate(stored, r)
		},
	},
		`{"podName":"","containers":[{"name":""}],"strategy":{"failurePolicy":"x"},"activeDeadlineSeconds":-1}`,
	)
}
