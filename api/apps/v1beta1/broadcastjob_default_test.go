package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestBroadcastJobDefault(t *testing.T) {
	for name, test := range map[string]struct{ in, want v1beta1.BroadcastJobSpec }{
		"everything is filled": {
			want: v1beta1.BroadcastJobSpec{
				Parallelism:      pointer(intstr.FromInt32(2147483647)),
				Template:         template(corev1.RestartPolicyOnFailure),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Always},
				FailurePolicy:    v1beta1.FailurePolicy{Type: v1beta1.FailurePolicyTypeFailFast},
			},
		},
		"what the user says stays": {
			in: v1beta1.BroadcastJobSpec{
				Parallelism:      pointer(intstr.FromString("0%")),
				Template:         template(corev1.RestartPolicyAlways), // for validation to refuse
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
				FailurePolicy:    v1beta1.FailurePolicy{Type: v1beta1.FailurePolicyTypePause},
			},
			want: v1beta1.BroadcastJobSpec{
				Parallelism:      pointer(intstr.FromString("0%")),
				Template:         template(corev1.RestartPolicyAlways),
				CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Never},
				FailurePolicy:    v1beta1.FailurePolicy{Type: v1beta1.FailurePolicyTypePause},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := v1beta1.BroadcastJob{Spec: test.in}
			job.Default()
			if diff := cmp.Diff(test.want, job.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func template(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: restart}}
}
