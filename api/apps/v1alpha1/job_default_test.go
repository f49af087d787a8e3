package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

// An object that is defaulted in this version is the one that v1beta1 makes of it: whichever webhook sees it.
func TestDefaultAgreesWithV1beta1(t *testing.T) {
	t.Run("AdvancedCronJob", defaultAgrees[v1alpha1.AdvancedCronJob, v1beta1.AdvancedCronJob])
	t.Run("BroadcastJob", defaultAgrees[v1alpha1.BroadcastJob, v1beta1.BroadcastJob])
	t.Run("ContainerRecreateRequest", defaultAgrees[v1alpha1.ContainerRecreateRequest, v1beta1.ContainerRecreateRequest])
	t.Run("ImageListPullJob", defaultAgrees[v1alpha1.ImageListPullJob, v1beta1.ImageListPullJob])
	t.Run("ImagePullJob", defaultAgrees[v1alpha1.ImagePullJob, v1beta1.ImagePullJob])
	t.Run("NodeImage", defaultAgrees[v1alpha1.NodeImage, v1beta1.NodeImage])
}

type defaulter[T any] interface {
	roundtrip.Object[T]
	Default()
}

func defaultAgrees[O, H any, PO interface {
	roundtriptest.Old[O, H]
	Default()
}, PH defaulter[H]](t *testing.T) {
	t.Helper()
	for seed := range int64(100) {
		plain := PO(new(O))
		roundtriptest.Filler(seed).Fill(plain)
		defaulted := PO(new(O))
		roundtriptest.Filler(seed).Fill(defaulted)
		defaulted.Default()

		want, got := PH(new(H)), PH(new(H))
		if err := plain.ConvertTo(want); err != nil {
			t.Fatal(err)
		}
		if err := defaulted.ConvertTo(got); err != nil {
			t.Fatal(err)
		}
		want.Default()
		got.Default()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-v1beta1 +v1alpha1):\n%s", seed, diff)
		}
	}
}

func TestAdvancedCronJobDefault(t *testing.T) {
	for name, test := range map[string]struct {
		in   v1alpha1.CronJobTemplate
		want v1alpha1.ConcurrencyPolicy
	}{
		"jobs may run beside each other": {
			in:   v1alpha1.CronJobTemplate{JobTemplate: &batchv1.JobTemplateSpec{}},
			want: v1beta1.AllowConcurrent,
		},
		"broadcast jobs may run beside each other": {
			in:   v1alpha1.CronJobTemplate{BroadcastJobTemplate: &v1alpha1.BroadcastJobTemplateSpec{}},
			want: v1beta1.AllowConcurrent,
		},
		"a template that this version cannot hold may need another policy": {},
	} {
		t.Run(name, func(t *testing.T) {
			job := v1alpha1.AdvancedCronJob{Spec: v1alpha1.AdvancedCronJobSpec{Template: test.in}}
			job.Default()
			if job.Spec.ConcurrencyPolicy != test.want {
				t.Errorf("concurrencyPolicy is %q, want %q", job.Spec.ConcurrencyPolicy, test.want)
			}
			if *job.Spec.Paused || *job.Spec.SuccessfulJobsHistoryLimit != 3 || *job.Spec.FailedJobsHistoryLimit != 1 {
				t.Errorf("spec is %+v", job.Spec)
			}
		})
	}
}

func TestJobDefault(t *testing.T) {
	t.Run("BroadcastJob", func(t *testing.T) {
		job := v1alpha1.BroadcastJob{}
		job.Default()
		if want := intstr.FromInt32(2147483647); *job.Spec.Parallelism != want {
			t.Errorf("parallelism is %v, want %v", job.Spec.Parallelism, want)
		}
	})
	t.Run("ContainerRecreateRequest", func(t *testing.T) {
		request := v1alpha1.ContainerRecreateRequest{}
		request.Default()
		if got := request.Spec.Strategy.FailurePolicy; got != v1alpha1.ContainerRecreateRequestFailurePolicyFail {
			t.Errorf("failurePolicy is %q", got)
		}
	})
	t.Run("ImagePullJob", func(t *testing.T) {
		job := v1alpha1.ImagePullJob{}
		job.Default()
		if got := job.Spec.ImagePullPolicy; got != v1beta1.PullIfNotPresent {
			t.Errorf("imagePullPolicy is %q", got)
		}
	})
	t.Run("ImageListPullJob", func(t *testing.T) {
		job := v1alpha1.ImageListPullJob{}
		job.Default()
		if got := job.Spec.CompletionPolicy.Type; got != v1beta1.Always {
			t.Errorf("completionPolicy.type is %q", got)
		}
	})
	t.Run("NodeImage", func(t *testing.T) {
		node := v1alpha1.NodeImage{Spec: v1alpha1.NodeImageSpec{Images: map[string]v1alpha1.ImageSpec{
			"nginx": {Tags: []v1alpha1.ImageTagSpec{{Tag: "b"}, {Tag: "a"}}},
		}}}
		node.Default()
		first := node.Spec.Images["nginx"].Tags[0]
		if first.Tag != "a" || *first.PullPolicy.TimeoutSeconds != 600 || *first.PullPolicy.BackoffLimit != 3 {
			t.Errorf("first tag is %+v", first)
		}
	})
}
