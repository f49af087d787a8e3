package validation_test

import (
	"testing"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzPullJob holds the laws of the rules of ImagePullJobs.
func FuzzPullJob(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.ImagePullJob, *appsv1beta1.ImagePullJob]{
		Check:         validation.ImagePullJob,
		Update:        validation.ImagePullJobUpdate,
		NeedsDefaults: true,
	})
}

// FuzzListPullJob holds the laws of the rules of ImageListPullJobs.
func FuzzListPullJob(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.ImageListPullJob, *appsv1beta1.ImageListPullJob]{
		Check:         validation.ImageListPullJob,
		NeedsDefaults: true,
	})
}

// FuzzNodeImage holds the laws of the rules of NodeImages.
func FuzzNodeImage(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.NodeImage, *appsv1beta1.NodeImage]{
		Check:         validation.NodeImage,
		NeedsDefaults: true,
	},
		`{"images":{"":{"tags":[{}]}}}`,
	)
}
