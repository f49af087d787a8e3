package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// What is written even when it is zero: the schema demands it, or clients of other releases read it.
func TestZeroValuesOnTheWire(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"EphemeralJobStatus": {
			v1alpha1.EphemeralJobStatus{}, `{"phase":"","match":0,"running":0,"succeeded":0,"waiting":0,"failed":0}`,
		},
		"PodProbeMarkerStatus": {v1alpha1.PodProbeMarkerStatus{}, `{"observedGeneration":0}`},
		"PodProbe":             {v1alpha1.PodProbe{}, `{"name":"","namespace":"","uid":"","IP":""}`},
		"ContainerProbe":       {v1alpha1.ContainerProbe{}, `{"name":"","containerName":"","probe":{}}`},
		"ImagePullJobStatus":   {v1alpha1.ImagePullJobStatus{}, `{"desired":0,"active":0,"succeeded":0,"failed":0}`},
		"ImageListPullJobStatus": {
			v1alpha1.ImageListPullJobStatus{}, `{"desired":0,"active":0,"completed":0,"succeeded":0}`,
		},
		"NodeImageStatus": {
			v1alpha1.NodeImageStatus{}, `{"desired":0,"succeeded":0,"failed":0,"pulling":0,"waiting":0}`,
		},
		"BroadcastJobStatus": {
			v1alpha1.BroadcastJobStatus{}, `{"active":0,"succeeded":0,"failed":0,"desired":0,"phase":""}`,
		},
		"AdvancedCronJobStatus":          {v1alpha1.AdvancedCronJobStatus{}, `{}`},
		"ContainerRecreateRequestStatus": {v1alpha1.ContainerRecreateRequestStatus{}, `{"phase":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
