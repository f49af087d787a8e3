package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestAdvancedCronJobConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.AdvancedCronJob, v1beta1.AdvancedCronJob](t, roundtriptest.Losses{
		Hub: []string{"/spec/template/imageListPullJobTemplate"},
	})
}

func TestAdvancedCronJobConversion(t *testing.T) {
	hub := v1beta1.AdvancedCronJob{Spec: v1beta1.AdvancedCronJobSpec{
		Schedule: "@daily",
		Template: v1beta1.CronJobTemplate{ImageListPullJobTemplate: &v1beta1.ImageListPullJobTemplateSpec{
			Spec: v1beta1.ImageListPullJobSpec{Images: []string{"nginx"}},
		}},
	}}
	down := v1alpha1.AdvancedCronJob{}
	if err := down.ConvertFrom(&hub); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1alpha1.CronJobTemplate{}, down.Spec.Template); diff != "" {
		t.Errorf("a template that v1alpha1 does not know (-want +got):\n%s", diff)
	}

	down.Spec.Schedule = "@hourly"
	up := v1beta1.AdvancedCronJob{}
	if err := down.ConvertTo(&up); err != nil {
		t.Fatal(err)
	}
	want := hub.Spec
	want.Schedule = "@hourly"
	if diff := cmp.Diff(want, up.Spec); diff != "" {
		t.Errorf("after an edit in v1alpha1 (-want +got):\n%s", diff)
	}
}
