package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestImagePullJobDefault(t *testing.T) {
	for name, test := range map[string]struct{ in, want v1beta1.ImagePullJobSpec }{
		"everything is filled": {
			want: v1beta1.ImagePullJobSpec{ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
				PullPolicy:       pullPolicy(600, 3),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Always},
				ImagePullPolicy:  v1beta1.PullIfNotPresent,
			}},
		},
		"what the user says stays, and the gaps beside it are filled": {
			in: v1beta1.ImagePullJobSpec{ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
				PullPolicy:       &v1beta1.PullPolicy{TimeoutSeconds: pointer[int32](5)},
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
				ImagePullPolicy:  v1beta1.PullAlways,
			}},
			want: v1beta1.ImagePullJobSpec{ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
				PullPolicy:       pullPolicy(5, 3),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
				ImagePullPolicy:  v1beta1.PullAlways,
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := v1beta1.ImagePullJob{Spec: test.in}
			job.Default()
			if diff := cmp.Diff(test.want, job.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImageListPullJobDefault(t *testing.T) {
	job := v1beta1.ImageListPullJob{}
	job.Default()
	want := v1beta1.ImageListPullJobSpec{ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
		PullPolicy:       pullPolicy(600, 3),
		CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Always},
	}}
	if diff := cmp.Diff(want, job.Spec); diff != "" {
		t.Errorf("spec (-want +got), imagePullPolicy is left to the children:\n%s", diff)
	}
}

func TestNodeImageDefault(t *testing.T) {
	node := v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{
			{Tag: "2", Version: 1},
			{Tag: "1", PullPolicy: &v1beta1.ImageTagPullPolicy{BackoffLimit: pointer[int32](0)}},
		}},
		"empty": {},
	}}}
	node.Default()
	want := map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{
			{
				Tag:        "1",
				PullPolicy: &v1beta1.ImageTagPullPolicy{TimeoutSeconds: pointer[int32](600), BackoffLimit: pointer[int32](0)},
			},
			{
				Tag:        "2",
				Version:    1,
				PullPolicy: &v1beta1.ImageTagPullPolicy{TimeoutSeconds: pointer[int32](600), BackoffLimit: pointer[int32](3)},
			},
		}},
		"empty": {},
	}
	if diff := cmp.Diff(want, node.Spec.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func pullPolicy(timeout, backoff int32) *v1beta1.PullPolicy {
	return &v1beta1.PullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
}

func pointer[T any](v T) *T { return &v }
