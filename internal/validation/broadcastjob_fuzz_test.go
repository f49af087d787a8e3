package validation_test

import (
	"testing"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzValidate holds the laws of the rules of BroadcastJobs.
func FuzzValidate(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.BroadcastJob, *appsv1beta1.BroadcastJob]{
		Check: validation.BroadcastJob,
	},
		`{"parallelism":"-1%","completionPolicy":{"type":"Never","ttlSecondsAfterFinished":-1},`+
			`"failurePolicy":{"type":"x","restartLimit":-1}}`,
	)
}
