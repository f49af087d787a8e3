package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestImagePullJobConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.ImagePullJob, v1beta1.ImagePullJob](t, roundtriptest.Losses{})
}

func TestImageListPullJobConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.ImageListPullJob, v1beta1.ImageListPullJob](t, roundtriptest.Losses{})
}

func TestNodeImageConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.NodeImage, v1beta1.NodeImage](t,
		roundtriptest.Losses{Hub: []string{"/spec/images/*/pullSecrets/*/mode"}},
		func(x *v1beta1.ReferenceObjectMode, c randfill.Continue) {
			*x = pick(c, v1beta1.ReferenceObjectModeBatch, "", "Unknown")
		},
	)
}

func TestNodeImageConversion(t *testing.T) {
	secrets := func(n v1beta1.NodeImage) []v1beta1.ReferenceObject { return n.Spec.Images["nginx"].PullSecrets }
	hub := v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"nginx": {
		PullSecrets: []v1beta1.ReferenceObject{{Namespace: "n", Name: "a", Mode: v1beta1.ReferenceObjectModeBatch}},
		Tags:        []v1beta1.ImageTagSpec{{Tag: "1"}},
	}}}}
	for name, test := range map[string]struct {
		edit func(*v1alpha1.ImageSpec)
		want []v1beta1.ReferenceObject
	}{
		"another tag leaves the mode alone": {
			edit: func(i *v1alpha1.ImageSpec) { i.Tags = append(i.Tags, v1alpha1.ImageTagSpec{Tag: "2"}) },
			want: []v1beta1.ReferenceObject{{Namespace: "n", Name: "a", Mode: v1beta1.ReferenceObjectModeBatch}},
		},
		"another secret does not inherit the mode": {
			edit: func(i *v1alpha1.ImageSpec) { i.PullSecrets[0].Name = "b" },
			want: []v1beta1.ReferenceObject{{Namespace: "n", Name: "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			down, up := v1alpha1.NodeImage{}, v1beta1.NodeImage{}
			if err := down.ConvertFrom(&hub); err != nil {
				t.Fatal(err)
			}
			image := down.Spec.Images["nginx"]
			test.edit(&image)
			down.Spec.Images["nginx"] = image
			if err := down.ConvertTo(&up); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, secrets(up)); diff != "" {
				t.Errorf("pullSecrets (-want +got):\n%s", diff)
			}
		})
	}
}
