package v1beta1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestContainerRecreateRequestDefault(t *testing.T) {
	for name, test := range map[string]struct {
		in, want *v1beta1.ContainerRecreateRequestStrategy
	}{
		"a strategy is filled in": {
			want: &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyFail},
		},
		"what the user says stays": {
			in: &v1beta1.ContainerRecreateRequestStrategy{
				FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyIgnore, OrderedRecreate: true,
			},
			want: &v1beta1.ContainerRecreateRequestStrategy{
				FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyIgnore, OrderedRecreate: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := v1beta1.ContainerRecreateRequest{Spec: v1beta1.ContainerRecreateRequestSpec{Strategy: test.in}}
			request.Default()
			if diff := cmp.Diff(test.want, request.Spec.Strategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
		})
	}
}

// The schema knows no empty phase: a status that no client wrote must not be sent.
func TestContainerRecreateRequestWithoutStatus(t *testing.T) {
	data, err := json.Marshal(v1beta1.ContainerRecreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if status, ok := fields["status"]; ok {
		t.Errorf("status is %v", status)
	}
}
