package workloads_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

func TestAnnotated(t *testing.T) {
	fields := &kruise.InPlaceUpdateStrategy{ImagePreDownloadTimeoutSeconds: ptr.To(int32(20))}
	cases := map[string]struct {
		why         string
		fields      *kruise.InPlaceUpdateStrategy
		annotations map[string]string
		want        kruise.InPlaceUpdateStrategy
	}{
		"none":   {"nothing is tuned", nil, nil, kruise.InPlaceUpdateStrategy{}},
		"fields": {"they are read where no annotation is", fields, nil, *fields},
		"annotations": {
			why:    "they come first",
			fields: fields,
			annotations: map[string]string{
				kruise.ImagePreDownloadTimeoutSecondsKey: "30", kruise.ImagePreDownloadParallelismKey: "4",
			},
			want: kruise.InPlaceUpdateStrategy{
				ImagePreDownloadTimeoutSeconds: ptr.To(int32(30)), ImagePreDownloadParallelism: ptr.To(intstr.FromInt32(4)),
			},
		},
		"nonsense": {
			why: "it is as if it were not set",
			annotations: map[string]string{
				kruise.ImagePreDownloadTimeoutSecondsKey:      "-1",
				kruise.ImagePreDownloadParallelismKey:         "all",
				kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "some",
			},
			want: kruise.InPlaceUpdateStrategy{},
		},
		"number": {
			why:         "it is a number of pods",
			annotations: map[string]string{kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "3"},
			want:        kruise.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: ptr.To(int32(3))},
		},
		"percentage": {
			why:         "it is one of five pods, rounded up",
			annotations: map[string]string{kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "25%"},
			want:        kruise.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: ptr.To(int32(2))},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, workloads.AnnotatedStrategy(c.fields, c.annotations, 5)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
